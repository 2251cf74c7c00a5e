/* The runtime's archives as data: tfc links executables wherever it is, without files beside it. */
    .section .rodata
    .balign 16
    .globl runtime_archive_data
    .globl runtime_archive_size
    .globl nghttp2_archive_data
    .globl nghttp2_archive_size
runtime_archive_data:
    .incbin TFC_RUNTIME_ARCHIVE
runtime_archive_end:
    .balign 16
nghttp2_archive_data:
    .incbin TFC_NGHTTP2_ARCHIVE
nghttp2_archive_end:
    .balign 8
runtime_archive_size:
    .quad runtime_archive_end - runtime_archive_data
nghttp2_archive_size:
    .quad nghttp2_archive_end - nghttp2_archive_data
    .section .note.GNU-stack,"",@progbits
