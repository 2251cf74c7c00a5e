
.
aDeviceIndex*
device_names

CPUGPU
.
bDeviceIndex*
device_names

GPUCPU
.
cDeviceIndex*
device_names

TPUGPU"Ê