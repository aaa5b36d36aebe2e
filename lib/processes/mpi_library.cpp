#include "processes/mpi_library.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "processes/launcher_prefix.h"

namespace dtrain {

namespace {

namespace fs = std::filesystem;

/// A binary interface (ABI) of MPI: the file names of the libraries with this ABI, and the shim for them.
struct Interface {
  std::optional<MpiFamily> family;  // the family to which the interface belongs; nullopt: any
  const char* shim;
  std::vector<const char*> names;
  const char* build_path;  // the library found at build time, or ""
};

const std::vector<Interface>& interfaces() {
  // In Debian, the library of MPICH is named libmpich.so.12. The library of Open MPI 1.10 is also named
  // libmpi.so.12; look_at() recognizes it by its version text.
  static const std::vector<Interface> all = {
      {MpiFamily::open_mpi, "libdtrain_mpi_openmpi.so", {"libmpi.so.40"}, DTRAIN_OPENMPI_LIBRARY},
      {MpiFamily::mpich, "libdtrain_mpi_mpich.so", {"libmpi.so.12", "libmpich.so.12"}, DTRAIN_MPICH_LIBRARY},
      {std::nullopt, "libdtrain_mpi_abi.so", {"libmpi_abi.so.1", "libmpi_abi.so.0"}, DTRAIN_MPI_ABI_LIBRARY},
  };
  return all;
}

/// Returns the shim's path, which is the same relative to the program in an installation and in a build
/// folder; "" if it does not exist.
std::string find_shim(const char* name) {
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  const fs::path shim = program.parent_path().parent_path() / "lib" / "dtrain" / name;
  return fs::exists(shim, unknown) ? shim.string() : "";
}

std::string path_of(void* library, const std::string& name) {
  const link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !map) return name;
  std::error_code missing;
  const fs::path path = fs::canonical(map->l_name, missing);
  return missing ? map->l_name : path.string();
}

/// Returns the text of MPI_Get_library_version, which may be called before MPI_Init
/// and has the same arguments in every binary interface; "" if the library does not have it.
std::string version_text_of(void* library) {
  const auto get = reinterpret_cast<int (*)(char*, int*)>(::dlsym(library, "MPI_Get_library_version"));
  if (!get) return "";
  std::array<char, 16384> text{};  // MPI_MAX_LIBRARY_VERSION_STRING is at most 8192
  int length = 0;
  get(text.data(), &length);
  return text.data();
}

/// Opens a library by name or path, and describes it; nullopt if it is not an MPI library that can be opened.
std::optional<MpiLibrary> look_at(const std::string& name, const Interface& interface) {
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::nullopt;
  const std::string text = version_text_of(library);
  const bool open_mpi = text.starts_with("Open MPI");
  // Rejects Open MPI 1.10, whose library has the same file name as MPICH's. A library without a version text
  // is not an MPI library.
  const bool wrong =
      text.empty() || (open_mpi && interface.shim == std::string_view("libdtrain_mpi_mpich.so"));
  if (wrong) return std::nullopt;
  return MpiLibrary{open_mpi ? MpiFamily::open_mpi : MpiFamily::mpich, short_mpi_version(text),
                    path_of(library, name), find_shim(interface.shim)};
}

/// Returns the names and paths to try for one interface.
std::vector<std::string> candidates(const Interface& interface, const std::vector<fs::path>& folders) {
  std::vector<std::string> all;
  std::error_code unknown;
  for (const fs::path& folder : folders)
    for (const char* name : interface.names)
      if (fs::exists(folder / name, unknown)) all.push_back((folder / name).string());
  for (const char* name : interface.names) all.emplace_back(name);
  if (*interface.build_path) all.emplace_back(interface.build_path);
  return all;
}

/// Adds a library to the list, which contains at most one library of each family. A library with a shim
/// replaces a library of the same family without one.
void add(std::vector<MpiLibrary>& libraries, MpiLibrary library) {
  const auto same = std::find_if(libraries.begin(), libraries.end(),
                                 [&](const MpiLibrary& other) { return other.family == library.family; });
  if (same == libraries.end()) {
    libraries.push_back(std::move(library));
  } else if (same->shim.empty() && !library.shim.empty()) {
    *same = std::move(library);
  }
}

/// Returns the interface of a library, which follows from its file name.
const Interface& interface_of(const std::string& path) {
  const std::string file = fs::path(path).filename().string();
  for (const Interface& interface : interfaces())
    for (const char* name : interface.names)
      if (file.starts_with(name)) return interface;
  throw UserError(
      fmt::format("DTRAIN_MPI_LIBRARY is '{}', but this is not a file name of an MPI library that dtrain "
                  "knows (libmpi.so.40, libmpi.so.12, libmpich.so.12, libmpi_abi.so.1, libmpi_abi.so.0)",
                  path));
}

std::vector<MpiLibrary> given_library(const std::string& path) {
  const Interface& interface = interface_of(path);
  auto library = look_at(path, interface);
  if (!library) {
    const char* reason = ::dlerror();
    throw UserError(fmt::format("DTRAIN_MPI_LIBRARY is '{}', which cannot be opened as an MPI library{}{}",
                                path, reason ? ": " : "", reason ? reason : ""));
  }
  return {*library};
}

std::string list(const std::vector<MpiLibrary>& libraries) {
  std::string text;
  for (const MpiLibrary& library : libraries)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", library.version, library.path);
  return text;
}

std::string families_of(const Launch& launch) {
  std::string text;
  for (const MpiFamily family : launch.families)
    text += fmt::format("{}{}", text.empty() ? "" : " or ", to_string(family));
  return text;
}

[[noreturn]] void refuse(const Launch& launch, const std::vector<MpiLibrary>& libraries) {
  const std::string start = fmt::format("{} started this process, ", launch.name());
  for (const MpiLibrary& library : libraries)
    if (std::find(launch.families.begin(), launch.families.end(), library.family) != launch.families.end())
      throw UserError(fmt::format(
          "{}and {} ({}) is installed, but this dtrain was built without the headers of this MPI, or its "
          "program was copied without the folder ../lib/dtrain beside it. Copy this folder, too, or install "
          "the headers (third_party/install.sh installs those of Open MPI) and build dtrain again",
          start, library.version, library.path));
  if (libraries.empty())
    throw UserError(
        fmt::format("{}but no MPI library was found. Install {} (Debian and Ubuntu: apt-get install "
                    "openmpi-bin, or mpich), set DTRAIN_MPI_LIBRARY to the path of its libmpi, or start "
                    "dtrain without a launcher",
                    start, families_of(launch)));
  const MpiLibrary& other = libraries.front();
  throw UserError(fmt::format(
      "{}but no {} library was found, only {}. Start dtrain with the {} of {}, or install {}, or set "
      "DTRAIN_MPI_LIBRARY to the path of its library",
      start, families_of(launch), list(libraries), other.family == MpiFamily::open_mpi ? "mpirun" : "mpiexec",
      to_string(other.family), families_of(launch)));
}

/// Returns the MPI library to use for the launch. Opens as few libraries as possible to find it, because some
/// MPI libraries install hooks when they are opened.
MpiLibrary find_mpi_library(const Launch& launch) {
  for (const MpiFamily family : launch.families)
    for (const MpiLibrary& library : find_mpi_libraries(family))
      if (library.family == family && !library.shim.empty()) return library;
  return choose_mpi_library(launch, find_mpi_libraries());
}

}  // namespace

std::vector<MpiLibrary> find_mpi_libraries(std::optional<MpiFamily> only) {
  if (const char* given = std::getenv("DTRAIN_MPI_LIBRARY"); given && *given) return given_library(given);
  std::vector<MpiLibrary> libraries;
  const std::vector<fs::path> folders = launcher_library_folders();
  for (const Interface& interface : interfaces()) {
    if (only && interface.family && interface.family != only) continue;
    for (const std::string& name : candidates(interface, folders)) {
      if (auto library = look_at(name, interface)) {
        const bool found = library->family == only && !library->shim.empty();
        add(libraries, std::move(*library));
        if (found) return libraries;
        break;
      }
    }
  }
  return libraries;
}

std::string describe_mpi_libraries() {
  std::vector<MpiLibrary> libraries;
  for (const MpiFamily family : detect_launch().families) {
    libraries = find_mpi_libraries(family);
    std::erase_if(libraries, [&](const MpiLibrary& library) { return library.family != family; });
    if (!libraries.empty()) break;
  }
  if (libraries.empty()) libraries = find_mpi_libraries();
  if (libraries.empty()) return "none";
  std::string text;
  for (const MpiLibrary& library : libraries)
    text += fmt::format(
        "{}{} ({}{})", text.empty() ? "" : ", ", library.version, library.path,
        library.shim.empty()
            ? "; dtrain was built without the headers of this MPI, or copied without ../lib/dtrain"
            : "");
  return text;
}

const MpiLibrary& choose_mpi_library(const Launch& launch, const std::vector<MpiLibrary>& libraries) {
  for (const MpiFamily family : launch.families)
    for (const MpiLibrary& library : libraries)
      if (library.family == family && !library.shim.empty()) return library;
  refuse(launch, libraries);
}

const MpiTable& open_mpi_for(const Launch& launch, MpiLibrary& library) {
  library = find_mpi_library(launch);
  // RTLD_GLOBAL makes the symbols of the MPI library available to the shim, which is not linked with it.
  if (!::dlopen(library.path.c_str(), RTLD_NOW | RTLD_GLOBAL))
    throw Error(fmt::format("{} cannot be opened: {}", library.path, ::dlerror()));
  void* const shim = ::dlopen(library.shim.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!shim)
    throw Error(fmt::format("{} cannot be opened with {} ({}): {}", library.shim, library.version,
                            library.path, ::dlerror()));
  const auto table = reinterpret_cast<decltype(&dtrain_mpi)>(::dlsym(shim, "dtrain_mpi"));
  if (!table || table()->table_version != kMpiTableVersion)
    throw Error(fmt::format("{} belongs to another version of dtrain; install dtrain again", library.shim));
  return *table();
}

std::string short_mpi_version(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  const auto word_at = [&](size_t start) {
    start = line.find_first_not_of(" \t", start);
    return start == line.npos ? "" : line.substr(start, line.find_first_of(" \t,", start) - start);
  };
  if (line.starts_with("Open MPI v")) return "Open MPI " + word_at(std::string_view("Open MPI v").size());
  constexpr std::string_view kMpich = "MPICH Version:";
  if (line.starts_with(kMpich)) return "MPICH " + word_at(kMpich.size());
  return line;
}

}  // namespace dtrain
