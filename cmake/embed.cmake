# Writes the text of each input file as a C string: cl/ntt.cl → const char healcl_cl_ntt[].
# A string literal may be limited to 4095 characters, so the text becomes an array of bytes: ASCII only.
set(code "/* Generated from cl/ by cmake/embed.cmake. */\n")
foreach(input ${INPUTS})
  get_filename_component(name ${input} NAME)
  string(REGEX REPLACE "[^A-Za-z0-9]" "_" name ${name})
  string(REGEX REPLACE "_cl$" "" name ${name})
  file(READ ${input} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND code "extern const char healcl_cl_${name}[];\n"
         "const char healcl_cl_${name}[] = {${bytes}0};\n")
endforeach()
file(WRITE ${OUTPUT} "${code}")
