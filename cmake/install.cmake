# Installs files, and makes packages: `cpack -G DEB` in the build folder.
include(CMakePackageConfigHelpers)

install(FILES include/healcl.h include/healcl_vendor.h TYPE INCLUDE)
install(FILES README.md CHANGELOG.md LICENSE TYPE DOC)
install(DIRECTORY docs TYPE DOC)
if(HEALCL_PROGRAM)
  install(TARGETS healcl)
  if(TARGET healcl-mpi)
    install(TARGETS healcl-mpi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT mpi)
  endif()
  install(FILES cmake/healcl.bash RENAME healcl
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  # For `healcl compile --cache`, which finds them from where the program lies.
  install(DIRECTORY transcripts DESTINATION ${CMAKE_INSTALL_DATADIR}/healcl FILES_MATCHING
          PATTERN "*.json" PATTERN "*.json.gz")
endif()

# find_package(healcl) reads one of healcl-shared.cmake and healcl-static.cmake.
set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/healcl)
foreach(kind ${library_kinds})
  install(TARGETS healcl_${kind} EXPORT healcl_${kind})
  install(EXPORT healcl_${kind} NAMESPACE healcl:: FILE healcl-${kind}.cmake DESTINATION ${folder})
endforeach()
configure_file(cmake/healcl-config.cmake.in healcl-config.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/healcl-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/healcl-config.cmake
              ${PROJECT_BINARY_DIR}/healcl-config-version.cmake DESTINATION ${folder})

# Paths from where healcl.pc lies, so that what is installed can be moved.
set(folder ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pc_libdir ${folder} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH pc_includedir ${folder} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
list(FILTER HEALCL_PACKAGES_LDFLAGS EXCLUDE REGEX "^-L/usr/")
list(JOIN HEALCL_PACKAGES_LDFLAGS " " pc_private)
configure_file(cmake/healcl.pc.in healcl.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/healcl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# healcl(3) is the header, cut where a comment begins a section.
file(READ include/healcl.h header)
string(REPLACE "\\" "\\e" header "${header}")
string(REPLACE "-" "\\-" header "${header}")
string(REGEX REPLACE "(^|\n)([.'])" "\\1\\\\&\\2" header "${header}")
string(REGEX REPLACE "/\\* [-\\]+ ([a-z, ]+) \\*/\n" ".EE\n.SH \\1\n.in 0\n.EX\n" header "${header}")
configure_file(cmake/healcl.3.in man/healcl.3 @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS include/healcl.h)
install(FILES ${PROJECT_BINARY_DIR}/man/healcl.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)

if(healcl_is_top)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_VENDOR "healcl")
  set(CPACK_PACKAGE_CONTACT "The authors of healcl")
  set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION math)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  # Loaded at run time, so no linker reports it.
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "ocl-icd-libopencl1 | libopencl1")
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "pocl-opencl-icd | opencl-icd")
  # A package of its own for what needs MPI: nothing else does.
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_UNSPECIFIED_PACKAGE_NAME healcl)
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME healcl-mpi)
  set(CPACK_COMPONENT_MPI_DESCRIPTION "Serves requests of HEAL transcripts by ranks of MPI")
  set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS "openmpi-bin, pocl-opencl-icd | opencl-icd")
  include(CPack)
endif()
