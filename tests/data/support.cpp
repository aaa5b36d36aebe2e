#include "data/support.h"

#include <stdexcept>

#include <isa-l/igzip_lib.h>

#include "config/load/load.h"
#include "data/columns/column.h"

namespace dtrain::test {

std::string gzip_of(const std::string& bytes) {
  std::string packed(bytes.size() + bytes.size() / 8 + 1024, '\0'), plain = bytes;
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<uint8_t*>(plain.data());
  stream.avail_in = static_cast<uint32_t>(plain.size());
  stream.next_out = reinterpret_cast<uint8_t*>(packed.data());
  stream.avail_out = static_cast<uint32_t>(packed.size());
  if (isal_deflate_stateless(&stream) != COMP_OK) throw std::runtime_error("cannot pack");
  packed.resize(stream.total_out);
  return packed;
}

void write_gzip(const std::string& path, const std::string& bytes) {
  write_file(path, gzip_of(bytes));
}

std::string idx_bytes(const std::vector<uint32_t>& shape, const std::string& values) {
  std::string bytes{'\0', '\0', '\x08', static_cast<char>(shape.size())};
  for (const uint32_t extent : shape)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(extent >> shift);
  return bytes + values;
}

std::string npy_bytes(const std::string& descr, const std::string& shape, const std::string& values,
                      const std::string& order) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  header.resize(118 - 1, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + values;
}

DatasetSpec parse(const TempDir& folder, const std::string& yaml) {
  Diagnostics diagnostics;
  const ConfigNode node = parse_yaml(yaml, folder / "dataset.yaml", diagnostics);
  diagnostics.throw_if_errors();
  auto spec = parse_dataset(node, diagnostics);
  diagnostics.throw_if_errors();
  return spec.value();
}

std::vector<double> read_rows(const Dataset& dataset, const std::vector<int64_t>& rows, size_t column) {
  std::vector<std::shared_ptr<std::byte>> memory;
  std::vector<View> views;
  for (const TensorSpec& spec : dataset.columns()) {
    View view{nullptr, spec.shape.prepended(static_cast<int64_t>(rows.size())), spec.dtype};
    memory.push_back(allocate_bytes(view.bytes()));
    view.data = memory.back().get();
    views.push_back(view);
  }
  dataset.read({rows}, views);
  std::vector<double> values;
  const View& view = views.at(column);
  for (int64_t i = 0; i < view.elements(); ++i) {
    if (view.dtype == DType::float32)
      values.push_back(view.as<float>()[i]);
    else if (view.dtype == DType::int32)
      values.push_back(view.as<int32_t>()[i]);
    else
      values.push_back(view.as<uint8_t>()[i]);
  }
  return values;
}

std::vector<double> read_all(const Dataset& dataset, size_t column) {
  return read_rows(dataset, row_numbers(0, dataset.size()), column);
}

}  // namespace dtrain::test
