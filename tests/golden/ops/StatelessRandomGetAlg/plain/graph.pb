
.
StatelessRandomGetAlgStatelessRandomGetAlg"Ê