
Ð
ConstConst*
dtype0*²
value¨B¥BL{"features":{"feature":{"a":{"int64List":{"value":[9223372036854775807]}}}}}BO{"features":{"feature":{"a":{"int64List":{"value":["-9223372036854775808"]}}}}}B={"features":{"feature":{"a":{"int64List":{"value":["+5"]}}}}}B={"features":{"feature":{"a":{"int64List":{"value":["05"]}}}}}

dDecodeJSONExampleConst"Ê