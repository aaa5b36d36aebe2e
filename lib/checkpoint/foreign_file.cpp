#include "checkpoint/foreign_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string_view>

#include "base/location.h"
#include "checkpoint/keras_layout.h"
#include "checkpoint/safetensors.h"

namespace dtrain {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kHdf5 = "\x89HDF\r\n\x1a\n"sv;
constexpr std::string_view kZip = "PK\x03\x04"sv;
constexpr std::string_view kPickle = "\x80"sv;
/// Before version 1.6, PyTorch wrote files that begin with this pickled number.
constexpr std::string_view kOldTorch = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv;

constexpr const char* kFromTorch =
    "; to use its weights, build the same model in Keras, copy the weights into its layers with set_weights "
    "(transpose Linear.weight), and save the model with model.save('model.h5')";

constexpr const char* kToBeImported =
    "; use `dtrain import FILE` to convert it, or start a new run with its weights: `model: {weights: {from: "
    "FILE}}`";

/// Returns the last `count` bytes of a file. In a zip archive, they contain the list of its members.
std::string last_bytes(const std::string& path, int64_t count) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(0, std::ios::end);
  const int64_t size = file.tellg();
  if (size < 0) return "";
  const int64_t from = std::max<int64_t>(size - count, 0);
  std::string bytes(static_cast<size_t>(size - from), '\0');
  file.seekg(from);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return bytes;
}

/// Returns the first 4 KiB and the last 64 KiB of a zip archive. The first part contains the name of the
/// first member, and the last part contains the list of members. If the list is longer than 64 KiB, the
/// archive can still be identified by the name of the first member.
std::string names_in_archive(const std::string& path) {
  constexpr size_t kEnd = 1 << 16;
  return first_bytes(path, 4096) + last_bytes(path, kEnd);
}

bool has_names_of_keras(const std::string& names) {
  const auto has = [&](std::string_view name) { return names.find(name) != std::string::npos; };
  return has("model.weights.h5") || (has("metadata.json") && has("config.json"));
}

std::string describe_archive(const std::string& path) {
  const std::string names = names_in_archive(path);
  if (has_names_of_keras(names)) return std::string("a model that Keras saved as .keras") + kToBeImported;
  if (names.find("/data.pkl") != std::string::npos)
    return std::string("a PyTorch file, which dtrain cannot read") + kFromTorch;
  return "a zip archive";
}

}  // namespace

bool begins_as_hdf5(const std::string& path) {
  return first_bytes(path, kHdf5.size()) == kHdf5;
}

bool is_keras_archive(const std::string& path) {
  return first_bytes(path, kZip.size()) == kZip && has_names_of_keras(names_in_archive(path));
}

bool is_foreign_model(const std::string& path) {
  const std::string start = first_bytes(path, kOldTorch.size());
  return start.starts_with(kZip) || start.starts_with(kPickle) || begins_as_safetensors(path) ||
         begins_as_hdf5(path);
}

std::string describe_file(const std::string& path) {
  const std::string start = first_bytes(path, kOldTorch.size());
  if (start.empty()) return "an empty file";
  if (start.starts_with(kZip)) return describe_archive(path);
  if (start == kOldTorch) return std::string("a PyTorch file, which dtrain cannot read") + kFromTorch;
  if (start.starts_with(kPickle)) return "a Python pickle";
  if (begins_as_safetensors(path))
    return "a safetensors file; to start a new run with its weights, use `model: {weights: {from: FILE}}`";
  if (!begins_as_hdf5(path)) return "something else";
  switch (keras_layout_of(path)) {
    case KerasLayout::layers:
      return std::string("a Keras .h5 file, or a checkpoint that another program has rewritten") +
             kToBeImported;
    case KerasLayout::vars:
      return "weights that Keras 3 saved as .weights.h5; to start a new run with them, use `model: {weights: "
             "{from: FILE}}`";
    case KerasLayout::none:
      break;
  }
  return "an HDF5 file that another program wrote";
}

}  // namespace dtrain
