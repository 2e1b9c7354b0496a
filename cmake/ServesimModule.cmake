# servesim_module(NAME SOURCES ... [DEPENDS module ...] [LIBRARIES target ...])
# One static library per folder of sim/. DEPENDS is the dependency graph of the project; tests/smoke checks that
# no file includes a module that is not listed here.
function(servesim_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  add_library(servesim_${name} STATIC ${ARG_SOURCES})
  add_library(servesim::${name} ALIAS servesim_${name})
  target_include_directories(servesim_${name} PUBLIC ${PROJECT_SOURCE_DIR}/sim)
  list(TRANSFORM ARG_DEPENDS PREPEND servesim::)
  target_link_libraries(servesim_${name} PUBLIC ${ARG_DEPENDS} ${ARG_LIBRARIES} PRIVATE servesim::strict)
endfunction()

# servesim_hot_path(TARGET...)
# The modules that run once per step or request, and the programs that are to be fast: in a release build with gcc
# they are optimised across files. The libraries' objects stay usable without that, which keeps linking the tests quick.
# Their structs are written field by field and read soon after: a pair of fields read as one vector would wait for
# both stores to leave the store buffer, and `rep stos` takes longer to start than to clear a struct.
function(servesim_hot_path)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR SERVESIM_SANITIZE)
    return()
  endif()
  set(tuning -fno-tree-slp-vectorize)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    list(APPEND tuning "-mmemset-strategy=unrolled_loop:512:noalign,libcall:-1:noalign")
  endif()
  foreach(target ${ARGN})
    get_target_property(type ${target} TYPE)
    target_compile_options(${target} PRIVATE -flto=auto -ffat-lto-objects ${tuning})
    if(type STREQUAL "EXECUTABLE")
      target_link_options(${target} PRIVATE -flto=auto -O3 ${tuning})
    endif()
  endforeach()
endfunction()

# servesim_test(NAME LABEL unit|property|golden|validation|smoke|browser SOURCES ... [LIBRARIES ...])
function(servesim_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} servesim::catch_main servesim::strict)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # take the plain objects of servesim_hot_path(), which link in no time
    target_link_options(${name} PRIVATE -fno-lto -fno-use-linker-plugin)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL})
  # One translation unit per test: their headers cost more than they do.
  set_target_properties(${name} PROPERTIES UNITY_BUILD ${SERVESIM_UNITY} UNITY_BUILD_BATCH_SIZE 0)
  target_compile_options(${name} PRIVATE -O1)
  if(NOT TARGET tests_${ARG_LABEL})
    add_custom_target(tests_${ARG_LABEL})  # builds what `ctest -L LABEL` runs
  endif()
  add_dependencies(tests_${ARG_LABEL} ${name})
endfunction()
