# The target `package` creates a .deb file for Debian (from version 12) and Ubuntu (from version 24.04). To install the
# package, no compiler is needed. The package contains the libraries that dtrain links, and installs them in
# /usr/lib/dtrain, because each distribution has other versions of these libraries. Only the C and C++ libraries and
# OpenMP are those of the system. NVIDIA's libraries are opened at run time if they are installed.
set_target_properties(dtrain PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/dtrain")
# DT_RPATH also applies to the libraries that other libraries need; DT_RUNPATH does not.
target_link_options(dtrain PRIVATE -Wl,--disable-new-dtags)
install(TARGETS dtrain RUNTIME_DEPENDENCY_SET dtrain_libraries RUNTIME DESTINATION bin)
install(RUNTIME_DEPENDENCY_SET dtrain_libraries
        PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|mvec|gcc_s|stdc\\+\\+|gomp)\\.so"
        LIBRARY DESTINATION lib/dtrain)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs ${PROJECT_SOURCE_DIR}/datasets DESTINATION share/doc/dtrain)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION share/doc/dtrain)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME dtrain)
set(CPACK_PACKAGE_VENDOR "The dtrain authors")
set(CPACK_PACKAGE_CONTACT "The dtrain authors <dtrain@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains neural networks that YAML files describe, on CPUs and GPUs")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "openmpi-bin | mpich")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.36), libstdc++6 (>= 12), libgomp1")
include(CPack)
