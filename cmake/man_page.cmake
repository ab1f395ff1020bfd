# Writes the manual page of a program, or of a command of it, out of what --help prints:
#   cmake -DPROGRAM=healcl -DCOMMAND=run -DTITLE=... -DPAGE=FILE -DHELP2MAN=... -DVERSION=... -P man_page.cmake
# The name of a command's page has no blank, and its line is the command's own, as apropos wants it.
set(name ${PROGRAM})
set(words ./${PROGRAM})
if(COMMAND)
  set(name ${PROGRAM}-${COMMAND})
  set(words "./${PROGRAM} ${COMMAND}")
  execute_process(COMMAND ./${PROGRAM} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
  if(NOT help MATCHES "\n  ${COMMAND} +([^\n]+)")
    message(FATAL_ERROR "${PROGRAM} --help does not list '${COMMAND}'")
  endif()
  set(TITLE ${CMAKE_MATCH_1})
endif()
execute_process(COMMAND ${HELP2MAN} --no-info --name=${TITLE} --version-string=${VERSION} ${words}
                OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n${PROGRAM} ${COMMAND} \\- " "\n${name} \\- " text "${text}")
file(WRITE ${PAGE} "${text}")
