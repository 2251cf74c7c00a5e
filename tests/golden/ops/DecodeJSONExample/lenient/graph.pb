
ñ
ConstConst*
dtype0*Ó
valueÉBÆBG{"features":{"feature":{"a":{"int64List":{"value":[1,null,1e18,],},}}}}B3{features:{feature:{$a_1:{int64List:{value:'7'}}}}}BK{"features":{"feature":{"a":{"bytesList":{"value":["--__","++//","YQ"]}}}}}BI{"features":{"feature":{"a":{"int64List":null,"floatList":{"value":2}}}}}B&{"features":{"feature":{"\x\v\'":{}}}}

dDecodeJSONExampleConst"Ê