/* The runtime's archives as data: tfc links executables wherever it is, without files beside it. */
    .macro archive name, file
    .section .rodata
    .balign 16
    .globl \name\()_archive_data
    .globl \name\()_archive_size
\name\()_archive_data:
    .incbin "\file"
\name\()_archive_end:
    .balign 8
\name\()_archive_size:
    .quad \name\()_archive_end - \name\()_archive_data
    .endm
    archive runtime, TFC_RUNTIME_ARCHIVE
    archive nghttp2, TFC_NGHTTP2_ARCHIVE
    archive png, TFC_PNG_ARCHIVE
    archive jpeg, TFC_JPEG_ARCHIVE
    archive z, TFC_Z_ARCHIVE
    archive ssl, TFC_SSL_ARCHIVE
    archive crypto, TFC_CRYPTO_ARCHIVE
    .section .note.GNU-stack,"",@progbits
