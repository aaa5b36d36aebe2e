#include "interop/onnx/export.h"

#include <filesystem>
#include <memory>

#include "base/files/new_file.h"
#include "interop/check_probes.h"
#include "interop/onnx/builder.h"
#include "interop/onnx/interpreter.h"

namespace dtrain {

namespace {

constexpr int64_t kLeastExternal = 256;  // initializers of at least this many bytes are stored externally
constexpr int64_t kAlignment = 4096;     // alignment of external data, so that it can be memory-mapped

int64_t bytes_of_tensor(const OnnxTensor& tensor) {
  const int64_t element = tensor.type == OnnxType::int64 ? 8 : tensor.type == OnnxType::float16 ? 2 : 4;
  return tensor.shape.elements() * element;
}

bool is_too_large(const OnnxModel& model) {
  constexpr int64_t kMost = 2'000'000'000;  // protocol buffer messages are limited to 2 GiB
  int64_t bytes = 0;
  for (const OnnxTensor& tensor : model.initializers) bytes += bytes_of_tensor(tensor);
  return bytes > kMost;
}

/// Writes the large initializers to `file`. Returns the location of each initializer in the file. The
/// locations of small initializers, which are not written, are empty.
std::vector<OnnxExternal> write_external(const OnnxModel& model, NewFile& file, const std::string& name) {
  std::vector<OnnxExternal> places;
  for (const OnnxTensor& tensor : model.initializers) {
    if (bytes_of_tensor(tensor) < kLeastExternal) {
      places.emplace_back();
      continue;
    }
    const std::string padding(static_cast<size_t>(-file.appended() & (kAlignment - 1)), '\0');
    file.append(padding.data(), padding.size());
    places.push_back({name, file.appended(), bytes_of_tensor(tensor)});
    const std::string data = onnx_raw_data(tensor);
    file.append(data.data(), data.size());
  }
  return places;
}

}  // namespace

OnnxModel onnx_model(const ExportedModel& model, const OnnxOptions& options) {
  return OnnxBuilder(model, options.opset, options.float16 ? OnnxType::float16 : OnnxType::float32).build();
}

std::vector<std::string> export_onnx(const ExportedModel& model, const OnnxOptions& options,
                                     const std::string& path) {
  const OnnxModel onnx = onnx_model(model, options);
  check_probes(model, run_onnx(onnx, model.probes.samples, model.probes.inputs),
               options.float16 ? ProbeTolerance::float16 : ProbeTolerance::float32, path);
  NewFile file(path);
  std::vector<std::string> names = {path};
  std::vector<OnnxExternal> places;
  std::unique_ptr<NewFile> data;
  if (options.external_data || is_too_large(onnx)) {
    names.push_back(path + ".data");
    data = std::make_unique<NewFile>(names.back());
    places = write_external(onnx, *data, std::filesystem::path(names.back()).filename());
  }
  const std::string bytes = onnx_bytes(onnx, places);
  file.append(bytes.data(), bytes.size());
  if (data) data->finish();
  file.finish();
  return names;
}

}  // namespace dtrain
