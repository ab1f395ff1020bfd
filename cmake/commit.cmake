# Writes the commit that SOURCE is at into OUTPUT, as the text of the C function healcl_commit; "" where
# SOURCE is no repository, as in a tarball. A file that would stay the same keeps its time.
set(commit "")
if(EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/commit.c.in ${OUTPUT} @ONLY)
