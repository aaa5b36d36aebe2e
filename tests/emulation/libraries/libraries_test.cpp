// The selection of NVIDIA's libraries, and messages about libraries that do not match. The tests use fake
// libraries, which report given versions (fake_library.cpp). Each test case opens the libraries in a separate
// process.
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <filesystem>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.h"
#include "device/cuda/version.h"
#include "device/gpu_info.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

/// Runs `work` in a child process and returns its result or the error that it throws.
std::string in_child(const std::function<std::string()>& work) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string said;
    try {
      said = work();
    } catch (const Error& error) {
      said = std::string("error: ") + error.what();
    }
    const bool whole = write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    _exit(whole ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char block[4096];
  for (ssize_t n = 0; (n = read(ends[0], block, sizeof block)) > 0;)
    said.append(block, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  return said;
}

std::string fake(const std::string& folder, const char* name) {
  return (fs::path(DTRAIN_FAKE_LIBRARIES) / folder / name).string();
}

/// Opens cuDNN. Returns its version and the names, versions and folders of the open libraries, such as
/// "91900: cuBLASLt 13.1.0 good cuDNN 9.19.0 good".
std::string open_cudnn() {
  std::string text = fmt::format("{}:", cudnnGetVersion());
  for (const GpuLibrary& library : opened_gpu_libraries())
    text += fmt::format(" {} {} {}", library.name, library.version,
                        fs::path(library.path).parent_path().filename().string());
  return text;
}

/// Opens cuDNN. dlopen() finds the fake library in the folder `found`. The fake library in the folder `known`
/// is the one that was found when the program was built. If a folder is "", there is no such library.
std::string open_cudnn_with(const std::string& found, const std::string& known) {
  const fs::path place = fs::path(DTRAIN_FAKE_LIBRARIES) / "known/libcudnn-fake.so.9";
  fs::remove(place);
  fs::create_directories(place.parent_path());
  if (!known.empty()) fs::create_symlink(fake(known, "libcudnn-fake.so.9"), place);
  return in_child([&] {
    // If a library of this name is already loaded, dlopen() uses it.
    if (!found.empty() && !dlopen(fake(found, "libcudnn-fake.so.9").c_str(), RTLD_NOW | RTLD_LOCAL))
      return std::string(dlerror());
    return open_cudnn();
  });
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

const std::string kVersion = cuda::library_version_text(CUDNN_VERSION);
const std::string kGood = fmt::format("{}: cuBLASLt 13.1.0 good NVRTC {} good cuDNN {} good", CUDNN_VERSION,
                                      cuda::version_text(CUDART_VERSION), kVersion);

}  // namespace

TEST_CASE(
    "cuDNN is opened after the libraries that it needs, and all libraries are listed with versions and "
    "paths") {
  CHECK(open_cudnn_with("good", "") == kGood);
  CHECK(open_cudnn_with("", "good") == kGood);
}

TEST_CASE("if cuDNN is for another CUDA version, the cuDNN that was found by the build is used instead") {
  CHECK(open_cudnn_with("other_cuda", "good") == kGood);
  CHECK(open_cudnn_with("old", "good") == kGood);
}

TEST_CASE("if cuDNN is for another CUDA version, the error names both versions") {
  const std::string why = open_cudnn_with("other_cuda", "");
  CHECK(has(why, fmt::format("error: computing on a GPU needs NVIDIA's cuDNN, which could not be loaded "
                             "(cuDNN {} ({}) is for CUDA {}, but "
                             "this program needs CUDA {}; {}",
                             kVersion, fake("other_cuda", "libcudnn-fake.so.9"), CUDART_VERSION / 1000 - 1,
                             CUDART_VERSION / 1000, fake("known", "libcudnn-fake.so.9"))));
  CHECK(has(why, fmt::format("; already opened: cuBLASLt 13.1.0 ({}), NVRTC",
                             fake("good", "libcublasLt-fake.so"))));
  CHECK(has(why, "; install cuDNN, or put its folder first in LD_LIBRARY_PATH"));
}

TEST_CASE("if cuDNN lacks a function, the cuDNN that was found by the build is used instead") {
  CHECK(open_cudnn_with("incomplete", "good") == kGood);
  CHECK(has(open_cudnn_with("incomplete", ""), "cuDNN lacks the function cudnnGetVersion"));
}

TEST_CASE("a cuDNN that is older than the program's headers is an error") {
  const std::string why = open_cudnn_with("old", "");
  CHECK(has(why, "cuDNN 9.0.0 ("));
  CHECK(has(why, fmt::format("is older than version {}, for which this program was built", kVersion)));
}

}  // namespace dtrain
