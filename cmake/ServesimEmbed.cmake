# servesim_embed(TARGET NAMESPACE FILE...)
# Builds the files' bytes into TARGET, as `extern const std::string_view NAMESPACE::NAME` for each, NAME being the file's
# name with everything but letters and digits made an underscore. Done anew when a file changes.
function(servesim_embed target namespace)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${target}_${namespace}.cpp)
  list(JOIN ARGN "|" files)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DNAMESPACE=${namespace} "-DFILES=${files}"
      -P ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake VERBATIM)
  target_sources(${target} PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
