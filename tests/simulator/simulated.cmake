# The runtime for the simulator: compiled with -DTFC_SIMULATE, one object, in which each name of system.txt is simulated_NAME, the variables
# are in one section (each simulated process has a copy) and the thread-local ones in another (each of its threads has).
set(SIMULATOR ${CMAKE_SOURCE_DIR}/tests/simulator)
list(FILTER RUNTIME_SOURCES EXCLUDE REGEX "/(process/main|net/tls)\\.c$") # tasks are simulated without TLS
add_library(tfc_runtime_simulated STATIC EXCLUDE_FROM_ALL ${RUNTIME_SOURCES} ${BASE_SOURCES})
target_compile_definitions(tfc_runtime_simulated PRIVATE TFC_SIMULATE "_Thread_local=__attribute__((section(\"thread_data\")))")

if(TFC_SANITIZE) # variables are copied from process to process, without gaps in between that must not be touched
  target_compile_options(tfc_runtime_simulated PRIVATE --param=asan-globals=0 -fdata-sections)
endif()
# What UndefinedBehaviorSanitizer says of each place in the source is no variable, and thirty times as large as all of them.
file(WRITE ${CMAKE_BINARY_DIR}/simulated.ld "SECTIONS {
  ubsan_data : { *(.data..Lubsan* .data.rel.local..Lubsan*) }
  .data.rel.ro : { *(.data.rel.ro .data.rel.ro.*) }
  .data : { *(.data .data.*) }
  .bss : { *(.bss .bss.* COMMON) }
}\n")

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${SIMULATOR}/system.txt)
file(STRINGS ${SIMULATOR}/system.txt lines)
set(renames "")
foreach(line IN LISTS lines)
  if(line STREQUAL "plain:")
    break()
  elseif(NOT line MATCHES "^#")
    string(REGEX MATCHALL "[^ ]+" names "${line}")
    foreach(name ${names})
      string(APPEND renames "${name} simulated_${name}\n")
    endforeach()
  endif()
endforeach()
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/simulated.names CONTENT "${renames}")

# What the simulator wants to see pass: calls of NAME from another file come to its __wrap_NAME, which calls NAME.
set(wraps "")
set(kept "")
foreach(name task_create task_destroy peer_say_bye job_say_gone gone_take job_close variable_copy commit_step commit_enter
        commit_freeze commit_restore commit_other
        task_run peer_set_up peer_take snapshot_take snapshot_write keeper_complete cut_begin cut_done cut_lost cut_refused cut_tick
        history_decide round_enter round_give hall_admit view_settle view_fetched view_begin
        token_share_allows token_share_note accumulator_apply)
  list(APPEND wraps --wrap=${name})
  list(APPEND kept --keep-global-symbol=${name})
endforeach()
list(APPEND kept --keep-global-symbol=accumulator_count) # asked, not seen to pass

set(object ${CMAKE_BINARY_DIR}/simulated.o)
add_custom_command(OUTPUT ${object} DEPENDS tfc_runtime_simulated ${CMAKE_BINARY_DIR}/simulated.names
  COMMAND ${CMAKE_LINKER} -r -T ${CMAKE_BINARY_DIR}/simulated.ld -o ${object}.whole ${wraps}
          --whole-archive $<TARGET_FILE:tfc_runtime_simulated> --no-whole-archive ${NGHTTP2_STATIC}
  COMMAND ${CMAKE_OBJCOPY} --redefine-syms=${CMAKE_BINARY_DIR}/simulated.names --keep-global-symbol=task_main
          ${kept} --set-section-flags .bss=alloc,load,contents,data
          --rename-section .bss=process_data --rename-section .data=process_data
          ${object}.whole ${object})
file(GLOB SIMULATOR_SOURCES CONFIGURE_DEPENDS ${SIMULATOR}/*.c)
list(FILTER SIMULATOR_SOURCES EXCLUDE REGEX "/test_[^/]*$")
add_library(tfc_simulator STATIC EXCLUDE_FROM_ALL ${SIMULATOR_SOURCES} ${object})
target_compile_definitions(tfc_simulator PRIVATE SOURCE_DIR="${CMAKE_SOURCE_DIR}")
target_link_libraries(tfc_simulator PUBLIC tfc_compiler ${object} ${PNG_STATIC} ${JPEG_STATIC} ${Z_STATIC} m)
