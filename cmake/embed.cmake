# Writes the text of each input file as a C string: cl/core.cl → const char healcl_cl_core[].
# Lines such as #include "memory.cl" are replaced by that file, so that a program is one string.
# A string literal may be limited to 4095 characters, so the text becomes an array of bytes.

# Sets result to the bytes of a file, in hexadecimal, with the files that it includes.
function(read_with_includes file result)
  get_filename_component(folder ${file} DIRECTORY)
  file(READ ${file} bytes HEX)
  file(STRINGS ${file} includes REGEX "^#include \"[a-z_]+\\.cl\"$")
  foreach(include ${includes})
    string(REGEX REPLACE "^#include \"(.*)\"$" "\\1" name ${include})
    read_with_includes(${folder}/${name} included)
    string(HEX "${include}" line)
    string(REPLACE "${line}" "${included}" bytes "${bytes}")
  endforeach()
  set(${result} "${bytes}" PARENT_SCOPE)
endfunction()

set(code "/* Generated from cl/ by cmake/embed.cmake. */\n")
foreach(input ${INPUTS})
  get_filename_component(name ${input} NAME)
  string(REGEX REPLACE "[^A-Za-z0-9]" "_" name ${name})
  string(REGEX REPLACE "_cl$" "" name ${name})
  read_with_includes(${input} bytes)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND code "extern const char healcl_cl_${name}[];\n"
         "const char healcl_cl_${name}[] = {${bytes}0};\n")
endforeach()
file(WRITE ${OUTPUT} "${code}")
