/* The signatures of TensorFlow's ops (scripts/extract_ops.py), as bytes. */
  .section .rodata
  .globl tf_ops_text
tf_ops_text:
  .incbin "tf_ops.txt"
  .byte 0
  .section .note.GNU-stack,"",@progbits
