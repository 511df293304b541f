# The port of libusher for vcpkg, to be used from the repository: vcpkg install usher --overlay-ports=packaging/vcpkg
# libcurl and json-c come from the system, as in all packages of libusher: vcpkg's own would be linked statically, and a
# host with another libcurl would then have two. The build needs Swift 6, or USHER_PREBUILT in the environment.
vcpkg_check_linkage(ONLY_DYNAMIC_LIBRARY)
set(VCPKG_BUILD_TYPE release) # the library has one build; its debug information does not change it
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS "-DUSHER_PREBUILT=$ENV{USHER_PREBUILT}")
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME usher CONFIG_PATH lib/cmake/Usher)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/doc" "${CURRENT_PACKAGES_DIR}/lib/.debug")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
