/* cpu_target.c: kernels to an object file for the CPU: LLVM modules, a short list of passes, the code generator.
 *
 * Many kernels are dealt to several modules (cpu_shares.h), each compiled by a thread of its own. How many depends on the kernels alone,
 * so that every machine makes the same bytes. */
#include <llvm-c/Analysis.h>
#include <llvm-c/Support.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ir/schedule/machine.h"
#include "targets/cpu/codegen.h"
#include "targets/cpu/cpu_parts.h"
#include "targets/cpu/cpu_shares.h"
#include "targets/target.h"

/* Loops are vectorised by codegen_*.c already: more passes were measured to cost time and change nothing. Unrolled loops may ask one thing
 * again and again, as at the edge of an image: jump-threading asks once, which makes shorter code and shortens what comes after it. */
#define PASSES "function(sroa,early-cse<memssa>,simplifycfg,jump-threading,loop-mssa(licm),instcombine<no-verify-fixpoint>,simplifycfg)"

static status check_name(const char *cpu) {
  static const char *const names[] = {
#define CPU(name) name,
#include "targets/cpu/cpu_names.def"
#undef CPU
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i], cpu) == 0)
      return OK;
  return fail(INVALID_ARGUMENT, "--cpu '%s': LLVM has no such 64-bit CPU: take native, x86-64-v3, znver4 ...", cpu);
}

/* The scheduler behind register allocation took a tenth of the time, and no kernel was faster for it: such CPUs order themselves. */
static const char *const llvm_options[] = {"tfc", "-disable-post-ra"};

/* Not to be called by two threads at once for the first time. */
static void initialise_llvm(void) {
  static bool done;
  if (done)
    return;
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeX86AsmParser();
  LLVMParseCommandLineOptions(sizeof llvm_options / sizeof *llvm_options, llvm_options, NULL);
  done = true;
}

/* "x86-64-v3" and the like are CPUs to LLVM; "native" is the machine at hand. */
static status create_machine(const struct target_options *options, LLVMTargetMachineRef *out) {
  initialise_llvm();
  const char *cpu = options->cpu ? options->cpu : "native";
  bool native = strcmp(cpu, "native") == 0;
  if (!native)
    TRY(check_name(cpu));
  char *triple = LLVMGetDefaultTargetTriple(), *name = native ? LLVMGetHostCPUName() : NULL;
  char *features = native ? LLVMGetHostCPUFeatures() : NULL, *error = NULL;
  LLVMTargetRef target;
  status result = OK;
  if (LLVMGetTargetFromTriple(triple, &target, &error))
    result = fail(INTERNAL, "LLVM has no target %s: %s", triple, error);
  else
    *out = LLVMCreateTargetMachine(target, triple, native ? name : cpu, features ? features : "", LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                   LLVMCodeModelDefault);
  LLVMDisposeMessage(triple);
  LLVMDisposeMessage(name);
  LLVMDisposeMessage(features);
  LLVMDisposeMessage(error);
  return result;
}

static void init_types(struct cpu_module *m) {
  LLVMContextRef x = m->context;
  m->i1 = LLVMInt1TypeInContext(x);
  m->i8 = LLVMInt8TypeInContext(x);
  m->i16 = LLVMInt16TypeInContext(x);
  m->i32 = LLVMInt32TypeInContext(x);
  m->i64 = LLVMInt64TypeInContext(x);
  m->f16 = LLVMHalfTypeInContext(x);
  m->f32 = LLVMFloatTypeInContext(x);
  m->f64 = LLVMDoubleTypeInContext(x);
  m->ptr = LLVMPointerTypeInContext(x, 0);
  m->none = LLVMVoidTypeInContext(x);
  m->string = LLVMStructTypeInContext(x, (LLVMTypeRef[]){m->ptr, m->i64}, 2, false);
}

static void module_deinit(struct cpu_module *m) {
  if (m->builder)
    LLVMDisposeBuilder(m->builder);
  if (m->module)
    LLVMDisposeModule(m->module);
  if (m->context)
    LLVMContextDispose(m->context);
  if (m->machine)
    LLVMDisposeTargetMachine(m->machine);
  arena_deinit(&m->arena);
}

static status module_init(struct cpu_module *m, const struct target_options *options) {
  memset(m, 0, sizeof *m);
  arena_init(&m->arena);
  TRY(create_machine(options, &m->machine));
  m->context = LLVMContextCreate();
  m->module = LLVMModuleCreateWithNameInContext("tfc", m->context);
  m->builder = LLVMCreateBuilderInContext(m->context);
  init_types(m);
  char *triple = LLVMGetTargetMachineTriple(m->machine);
  LLVMSetTarget(m->module, triple);
  LLVMDisposeMessage(triple);
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(m->machine);
  LLVMSetModuleDataLayout(m->module, layout);
  LLVMDisposeTargetData(layout);
  m->cpu = machine_find(options->cpu);
  m->math = options->math;
  m->has_fma = m->cpu->has_fma && m->math != MATH_STRICT;
  m->suffix = options->variant ? arena_printf(&m->arena, "_%u", options->variant) : "";
  return OK;
}

static status cpu_level_of(const struct target_options *options, uint32_t *out) {
  if (options->cpu && strcmp(options->cpu, "native") != 0)
    TRY(check_name(options->cpu));
  *out = machine_find(options->cpu)->level;
  return OK;
}

static void add_target_attributes(struct cpu_module *m, value f) {
  char *cpu = LLVMGetTargetMachineCPU(m->machine), *features = LLVMGetTargetMachineFeatureString(m->machine);
  const char *pairs[][2] = {{"target-cpu", cpu}, {"target-features", features}, {"prefer-vector-width", "512"}};
  for (int i = 0; i < 3; i++)
    if (pairs[i][1][0])
      LLVMAddAttributeAtIndex(
        f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
        LLVMCreateStringAttribute(m->context, pairs[i][0], (unsigned)strlen(pairs[i][0]), pairs[i][1], (unsigned)strlen(pairs[i][1])));
  LLVMDisposeMessage(cpu);
  LLVMDisposeMessage(features);
}

/* One module's share of the kernels. */
struct part {
  const struct target_options *options;
  const struct target_unit *unit;
  uint32_t number;
  const uint32_t *share; /* by kernel: the number of its part; NULL: there is one part */
  const char *data_path; /* of the program's bytes, in the first part, or NULL */
  LLVMMemoryBufferRef object;
  status result;
  char text[1024]; /* of a failure */
};

/* A function of another part's. */
static value declare_function(struct cpu_module *m, const struct kernel *k, const char *suffix) {
  value f =
    LLVMAddFunction(m->module, arena_printf(&m->arena, "%s%s.%s", k->name, m->suffix, suffix), LLVMFunctionType(m->none, NULL, 0, false));
  LLVMSetVisibility(f, LLVMHiddenVisibility);
  return f;
}

/* tfc_kernels, or that of a further variant: run and query of each kernel, in order. */
static void add_table(struct cpu_module *m, value *functions, uint32_t count) {
  LLVMTypeRef type = LLVMArrayType2(m->ptr, (uint64_t)count * 2);
  value table = LLVMAddGlobal(m->module, type, arena_printf(&m->arena, "tfc_kernels%s", m->suffix));
  LLVMSetInitializer(table, LLVMConstArray2(m->ptr, functions, (uint64_t)count * 2));
  LLVMSetGlobalConstant(table, true);
  LLVMSetAlignment(table, 16);
}

static void write_part(struct cpu_module *m, const struct part *part) {
  const struct target_unit *unit = part->unit;
  value *functions = ARENA_ARRAY(&m->arena, value, unit->count * 2 + 1);
  for (uint32_t i = 0; i < unit->count; i++) {
    bool is_own = !part->share || part->share[i] == part->number;
    if (is_own) {
      emit_kernel(m, unit->kernels[i], &functions[2 * i]);
    } else if (part->number == 0) {
      functions[2 * i] = declare_function(m, unit->kernels[i], "run");
      functions[2 * i + 1] = declare_function(m, unit->kernels[i], "query");
    }
    for (int j = 0; part->number > 0 && is_own && j < 2; j++) {
      LLVMSetLinkage(functions[2 * i + (uint32_t)j], LLVMExternalLinkage);
      LLVMSetVisibility(functions[2 * i + (uint32_t)j], LLVMHiddenVisibility);
    }
  }
  if (part->number == 0)
    add_table(m, functions, unit->count);
}

static status write_kernels(struct cpu_module *m, const struct part *part) {
  write_part(m, part);
  for (value f = LLVMGetFirstFunction(m->module); f; f = LLVMGetNextFunction(f))
    if (!LLVMIsDeclaration(f))
      add_target_attributes(m, f);
  char *error = NULL;
  status result = OK;
  if (LLVMVerifyModule(m->module, LLVMReturnStatusAction, &error))
    result = fail(INTERNAL, "LLVM refuses a kernel: %s", error);
  LLVMDisposeMessage(error);
  return result;
}

static status optimise(struct cpu_module *m) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = LLVMRunPasses(m->module, PASSES, m->machine, options);
  LLVMDisposePassBuilderOptions(options);
  if (!error)
    return OK;
  char *text = LLVMGetErrorMessage(error);
  status result = fail(INTERNAL, "LLVM's passes: %s", text);
  LLVMDisposeErrorMessage(text);
  return result;
}

static status build_module(struct cpu_module *m, const struct part *part) {
  TRY(module_init(m, part->options));
  TRY(write_kernels(m, part));
  return optimise(m);
}

static status cpu_emit_text(struct cpu_module *m, const char *kind, struct arena *arena, char **out) {
  if (strcmp(kind, "llvm") == 0) {
    char *text = LLVMPrintModuleToString(m->module);
    *out = arena_strdup(arena, text);
    LLVMDisposeMessage(text);
    return OK;
  }
  LLVMMemoryBufferRef buffer = NULL;
  char *error = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(m->machine, m->module, LLVMAssemblyFile, &error, &buffer)) {
    status result = fail(INTERNAL, "LLVM's code generator: %s", error);
    LLVMDisposeMessage(error);
    return result;
  }
  *out = arena_strndup(arena, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
  LLVMDisposeMemoryBuffer(buffer);
  return OK;
}

static status cpu_emit(const struct target_options *options, const struct target_unit *unit, const char *kind, struct arena *arena,
                       char **out) {
  if (strcmp(kind, "llvm") != 0 && strcmp(kind, "asm") != 0)
    return fail(UNIMPLEMENTED, "the CPU target prints llvm and asm, not '%s'", kind);
  struct cpu_module m;
  struct part whole = {.options = options, .unit = unit};
  status result = build_module(&m, &whole);
  if (result == OK)
    result = cpu_emit_text(&m, kind, arena, out);
  module_deinit(&m);
  return result;
}

/* The program's bytes go through the assembler: as an LLVM constant they would cost time and memory many times their size. */
static void include_program(struct cpu_module *m, const char *path) {
  char *quoted = arena_alloc(&m->arena, strlen(path) * 2 + 1);
  size_t n = 0;
  for (const char *p = path; *p; p++) {
    if (*p == '"' || *p == '\\')
      quoted[n++] = '\\';
    quoted[n++] = *p;
  }
  char *text = arena_printf(&m->arena,
                            ".section .rodata.tfc_program,\"a\",@progbits\n.globl tfc_program\n.p2align 6\n"
                            ".type tfc_program,@object\ntfc_program:\n.incbin \"%s\"\n.size tfc_program, .-tfc_program\n"
                            ".byte 0\n.text\n",
                            quoted);
  LLVMSetModuleInlineAsm2(m->module, text, strlen(text));
}
static status write_program(const struct target_unit *unit, const char *path) {
  FILE *file = fopen(path, "wb");
  if (!file)
    return fail(INTERNAL, "cannot write %s", path);
  bool written = fwrite(unit->data, 1, unit->data_size, file) == unit->data_size;
  return fclose(file) == 0 && written ? OK : fail(INTERNAL, "cannot write %s", path);
}

static status compile_module(struct cpu_module *m, struct part *part) {
  TRY(build_module(m, part));
  if (part->data_path)
    include_program(m, part->data_path);
  char *error = NULL;
  if (LLVMTargetMachineEmitToMemoryBuffer(m->machine, m->module, LLVMObjectFile, &error, &part->object)) {
    status result = fail(INTERNAL, "LLVM's code generator: %s", error);
    LLVMDisposeMessage(error);
    return result;
  }
  return OK;
}
static void *compile_part(void *argument) {
  struct part *part = argument;
  struct cpu_module m;
  part->result = compile_module(&m, part);
  if (part->result != OK)
    snprintf(part->text, sizeof part->text, "%s", status_text());
  module_deinit(&m);
  return NULL;
}

#define PARTS_MAX 8
#define PART_KERNELS 16 /* fewer are not worth a module */

static status compile_parts(const struct target_options *options, const struct target_unit *unit, const char *data_path,
                            const char *object_path) {
  struct part parts[PARTS_MAX] = {0};
  pthread_t threads[PARTS_MAX];
  bool runs[PARTS_MAX] = {false};
  LLVMMemoryBufferRef objects[PARTS_MAX] = {NULL};
  uint32_t count = unit->count / PART_KERNELS < 1 ? 1 : unit->count / PART_KERNELS > PARTS_MAX ? PARTS_MAX : unit->count / PART_KERNELS;
  uint32_t *share = calloc(unit->count + 1, sizeof *share);
  status result = OK;
  if (!share)
    return fail(RESOURCE_EXHAUSTED, "no memory");
  initialise_llvm();
  kernel_shares(unit->kernels, unit->count, count, share);
  for (uint32_t i = 0; i < count; i++)
    parts[i] = (struct part){.options = options, .unit = unit, .number = i, .share = share, .data_path = i ? NULL : data_path};
  for (uint32_t i = 1; i < count; i++)
    runs[i] = pthread_create(&threads[i], NULL, compile_part, &parts[i]) == 0;
  for (uint32_t i = 0; i < count; i++) {
    if (runs[i])
      pthread_join(threads[i], NULL);
    else
      compile_part(&parts[i]); /* the first, and any for which there is no thread */
    objects[i] = parts[i].object;
    if (result == OK && parts[i].result != OK)
      result = fail(parts[i].result, "%s", parts[i].text);
  }
  if (result == OK)
    result = parts_write(object_path, objects, count);
  for (uint32_t i = 0; i < count; i++)
    if (objects[i])
      LLVMDisposeMemoryBuffer(objects[i]);
  free(share);
  return result;
}

static status cpu_compile(const struct target_options *options, const struct target_unit *unit, const char *object_path) {
  if (!unit->data)
    return compile_parts(options, unit, NULL, object_path);
  struct arena arena;
  arena_init(&arena);
  char *data_path = arena_printf(&arena, "%s.data", object_path);
  status result = write_program(unit, data_path);
  if (result == OK)
    result = compile_parts(options, unit, data_path, object_path);
  unlink(data_path);
  arena_deinit(&arena);
  return result;
}

const struct target cpu_target = {"cpu", cpu_emit, cpu_compile, cpu_level_of};
