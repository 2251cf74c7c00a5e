
‚
ConstConst*
dtype0*e
value\BZ"Hq/Í¨Î-Wœê-ÃtBÎ.€?K#µİ!‚ÔS06 ıœ7ÒŞJˆmc TÍ2O©@lÓqê,ÛóûšëV‡ã5¯n¼
1
e	EncodePngConst*
compression	*
T0"Ê