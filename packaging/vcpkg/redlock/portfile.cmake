# A port for vcpkg, as an overlay of a checkout: vcpkg install redlock --overlay-ports=packaging/vcpkg
#
# Not run where the project is developed, which has no vcpkg. It takes the sources of the checkout in which it stands.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if("tls" IN_LIST FEATURES)
    set(tls enabled)
else()
    set(tls disabled)
endif()

vcpkg_configure_meson(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS -Dtls=${tls} -Dtests=disabled -Dtesting=disabled -Dbench=disabled -Dexamples=disabled -Dtools=disabled
)
vcpkg_install_meson()
vcpkg_fixup_pkgconfig()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/redlock)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
