/* unicode_class.c: two tables of ranges, in ascending order; each range ends where the next one begins. */
#include "runtime/text/unicode_class.h"

#include <string.h>

#define CODE_POINT_MAX 0x10ffff
#define COUNT(table) (sizeof(table) / sizeof *(table))

static const struct {
  int32_t first;
  int16_t script;
} scripts[] = {
#include "runtime/text/unicode_script.def"
};
static const struct {
  int32_t first;
  char category[3];
} categories[] = {
#include "runtime/text/unicode_category.def"
};

/* By ICU's numbers, as patterns name them. 103 is what has none. */
static const char *const script_names[] = {
  "Common",
  "Inherited",
  "Arabic",
  "Armenian",
  "Bengali",
  "Bopomofo",
  "Cherokee",
  "Coptic",
  "Cyrillic",
  "Deseret",
  "Devanagari",
  "Ethiopic",
  "Georgian",
  "Gothic",
  "Greek",
  "Gujarati",
  "Gurmukhi",
  "Han",
  "Hangul",
  "Hebrew",
  "Hiragana",
  "Kannada",
  "Katakana",
  "Khmer",
  "Lao",
  "Latin",
  "Malayalam",
  "Mongolian",
  "Myanmar",
  "Ogham",
  "Old_Italic",
  "Oriya",
  "Runic",
  "Sinhala",
  "Syriac",
  "Tamil",
  "Telugu",
  "Thaana",
  "Thai",
  "Tibetan",
  "Canadian_Aboriginal",
  "Yi",
  "Tagalog",
  "Hanunoo",
  "Buhid",
  "Tagbanwa",
  "Braille",
  "Cypriot",
  "Limbu",
  "Linear_B",
  "Osmanya",
  "Shavian",
  "Tai_Le",
  "Ugaritic",
  [55] = "Buginese",
  "Glagolitic",
  "Kharoshthi",
  "Syloti_Nagri",
  "New_Tai_Lue",
  "Tifinagh",
  "Old_Persian",
  "Balinese",
  "Batak",
  [65] = "Brahmi",
  "Cham",
  [71] = "Egyptian_Hieroglyphs",
  [75] = "Pahawh_Hmong",
  "Old_Hungarian",
  [78] = "Javanese",
  "Kayah_Li",
  [82] = "Lepcha",
  "Linear_A",
  "Mandaic",
  [86] = "Meroitic_Hieroglyphs",
  "Nko",
  "Old_Turkic",
  "Old_Permic",
  "Phags_Pa",
  "Phoenician",
  "Miao",
  [99] = "Vai",
  [101] = "Cuneiform",
  [104] = "Carian",
  [106] = "Tai_Tham",
  "Lycian",
  "Lydian",
  "Ol_Chiki",
  "Rejang",
  "Saurashtra",
  "SignWriting",
  "Sundanese",
  [115] = "Meetei_Mayek",
  "Imperial_Aramaic",
  "Avestan",
  "Chakma",
  [120] = "Kaithi",
  "Manichaean",
  "Inscriptional_Pahlavi",
  "Psalter_Pahlavi",
  [125] = "Inscriptional_Parthian",
  "Samaritan",
  "Tai_Viet",
  [130] = "Bamum",
  "Lisu",
  [133] = "Old_South_Arabian",
  "Bassa_Vah",
  "Duployan",
  "Elbasan",
  "Grantha",
  [140] = "Mende_Kikakui",
  "Meroitic_Cursive",
  "Old_North_Arabian",
  "Nabataean",
  "Palmyrene",
  "Khudawadi",
  "Warang_Citi",
  [149] = "Mro",
  "Nushu",
  "Sharada",
  "Sora_Sompeng",
  "Takri",
  "Tangut",
  [156] = "Anatolian_Hieroglyphs",
  "Khojki",
  "Tirhuta",
  "Caucasian_Albanian",
  "Mahajani",
  "Ahom",
  "Hatran",
  "Modi",
  "Multani",
  "Pau_Cin_Hau",
  "Siddham",
  "Adlam",
  "Bhaiksuki",
  "Marchen",
  "Newa",
  "Osage",
  [175] = "Masaram_Gondi",
  "Soyombo",
  "Zanabazar_Square",
  "Dogra",
  "Gunjala_Gondi",
  "Makasar",
  "Medefaidrin",
  "Hanifi_Rohingya",
  "Sogdian",
  "Old_Sogdian",
  "Elymaic",
  "Nyiakeng_Puachue_Hmong",
  "Nandinagari",
  "Wancho",
  "Chorasmian",
  "Dives_Akuru",
  "Khitan_Small_Script",
  "Yezidi",
};

size_t unicode_entry_from(const void *entries, size_t count, size_t size, int32_t code) {
  size_t low = 0, high = count;
  while (high - low > 1) {
    size_t middle = (low + high) / 2;
    if (*(const int32_t *)((const char *)entries + middle * size) <= code)
      low = middle;
    else
      high = middle;
  }
  return low;
}
#define ENTRY_FROM(table, code) unicode_entry_from(table, COUNT(table), sizeof *(table), code)

static bool is_code_point(int32_t code) { return code >= 0 && code <= CODE_POINT_MAX; }
int32_t unicode_script(int32_t code) { return is_code_point(code) ? scripts[ENTRY_FROM(scripts, code)].script : -1; }
const char *unicode_category(int32_t code) { return is_code_point(code) ? categories[ENTRY_FROM(categories, code)].category : "Cn"; }

static int find_script(const char *name, size_t size) {
  for (size_t i = 0; i < COUNT(script_names); i++)
    if (script_names[i] && strlen(script_names[i]) == size && memcmp(script_names[i], name, size) == 0)
      return (int)i;
  return -1;
}

/* Code points that are not assigned ("Cn") are in no class. */
static bool is_of_category(size_t i, const char *name, size_t size) {
  return memcmp(categories[i].category, name, size) == 0 && strcmp(categories[i].category, "Cn") != 0;
}

bool unicode_class_each(const char *name, size_t size, void (*found)(void *self, int32_t low, int32_t high), void *self) {
  bool any = false;
  int script = find_script(name, size);
  if (size == 3 && memcmp(name, "Any", 3) == 0) {
    found(self, 0, CODE_POINT_MAX);
    return true;
  }
  for (size_t i = 0; script >= 0 && i < COUNT(scripts); i++)
    if (scripts[i].script == script)
      found(self, scripts[i].first, i + 1 < COUNT(scripts) ? scripts[i + 1].first - 1 : CODE_POINT_MAX);
  for (size_t i = 0; script < 0 && size >= 1 && size <= 2 && i < COUNT(categories); i++)
    if (is_of_category(i, name, size)) {
      found(self, categories[i].first, i + 1 < COUNT(categories) ? categories[i + 1].first - 1 : CODE_POINT_MAX);
      any = true;
    }
  return script >= 0 || any;
}
