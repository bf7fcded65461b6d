"""A recipe for Conan 2: conan create packaging/conan

Not run where the project is developed, which has no Conan. It takes the sources of the checkout in which it stands.
"""

import pathlib

from conan import ConanFile
from conan.tools.files import copy, load
from conan.tools.gnu import PkgConfigDeps
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain

SOURCES = ('include/*', 'lib/*', 'testing/*', 'packaging/cmake/*', 'bench/meson.build', 'examples/meson.build', 'tools/meson.build',
           'docs/pictures/meson.build', 'docs/snippets/meson.build', 'test/meson.build', 'subprojects/*.wrap',
           'subprojects/packagefiles/*', 'meson.build', 'meson_options.txt', 'LICENSE')


class Redlock(ConanFile):
    name = 'redlock'
    license = 'MIT'
    description = 'A distributed lock for C++20 services, on a majority of independent Redis masters'
    topics = 'lock', 'redis', 'redlock', 'asio', 'distributed'
    package_type = 'library'
    settings = 'os', 'arch', 'compiler', 'build_type'
    options = {'shared': [True, False], 'tls': [True, False]}
    default_options = {'shared': False, 'tls': True, 'boost/*:without_url': False}

    @property
    def _root(self):
        return pathlib.Path(self.recipe_folder).parent.parent

    def set_version(self):
        text = load(self, self._root / 'meson.build')
        self.version = text.split("version: '", 1)[1].split("'", 1)[0]

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, self._root, self.export_sources_folder)

    def layout(self):
        basic_layout(self)

    def requirements(self):
        # A program and the library need the same Boost: its types are part of the interface.
        self.requires('boost/[>=1.81 <2]', transitive_headers=True, transitive_libs=True)
        self.requires('fmt/[>=9]')
        self.requires('hiredis/[>=1]')
        if self.options.tls:
            self.requires('openssl/[>=3 <4]')

    def build_requirements(self):
        self.tool_requires('meson/[>=1]')

    def generate(self):
        PkgConfigDeps(self).generate()
        toolchain = MesonToolchain(self)
        toolchain.properties['boost_root'] = self.dependencies['boost'].package_folder
        for part in ('tests', 'testing', 'bench', 'examples', 'tools'):
            toolchain.project_options[part] = 'disabled'
        toolchain.project_options['tls'] = 'enabled' if self.options.tls else 'disabled'
        toolchain.generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        copy(self, 'LICENSE', self.source_folder, pathlib.Path(self.package_folder) / 'licenses')
        Meson(self).install()

    def package_info(self):
        self.cpp_info.libs = ['redlock']
        self.cpp_info.requires = ['boost::headers', 'boost::url', 'fmt::fmt', 'hiredis::hiredis']
        if self.options.tls:
            self.cpp_info.requires.append('openssl::openssl')
        self.cpp_info.set_property('cmake_file_name', 'redlock')
        self.cpp_info.set_property('cmake_target_name', 'redlock::redlock')
        self.cpp_info.set_property('pkg_config_name', 'redlock')
