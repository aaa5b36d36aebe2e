#include "data/readers/arrays/array_file.h"

#include <cstring>

#include <fmt/format.h>

#include "base/error.h"

namespace dtrain {

void check_shape(const std::string& path, const Shape& shape, int element_bytes) {
  if (shape.rank() == 0)
    throw UserError(fmt::format("{}: expected an array of samples, found a single value", path));
  int64_t bytes = element_bytes;
  for (const int64_t extent : shape) {
    int64_t product = 0;
    if (extent < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &product) ||
        product >= (int64_t{1} << 60))
      throw UserError(fmt::format("{}: expected a shape that fits in memory, found {}", path, shape.str()));
    bytes = product;
  }
  if (shape.elements() == 0)
    throw UserError(fmt::format("{}: expected an array with at least one element, found an array of shape {}",
                                path, shape.str()));
}

namespace {

TensorSpec row_spec(const std::string& name, const ArrayHeader& header) {
  std::vector<int64_t> extents(header.shape.begin() + 1, header.shape.end());
  return {name, Shape(std::move(extents)), header.type.dtype()};
}

/// Reads rows directly from the file.
class ArrayFileColumn final : public Column {
 public:
  ArrayFileColumn(std::shared_ptr<const InputFile> file, const std::string& name, ArrayHeader header,
                  int64_t offset)
      : file_(std::move(file)), header_(std::move(header)), spec_(row_spec(name, header_)), offset_(offset) {}

  const TensorSpec& spec() const override { return spec_; }
  int64_t size() const override { return header_.shape[0]; }
  bool in_memory() const override { return false; }
  void check() const override { file_->check_unchanged(); }

 protected:
  void read_rows(std::span<const int64_t> rows, void* dst) const override {
    const int64_t elements = row_elements(), stored_bytes = elements * header_.type.bytes;
    for_each_run(rows, [&](int64_t first, size_t place, int64_t count) {
      auto* out = static_cast<std::byte*>(dst) + place * row_bytes();
      const auto bytes = static_cast<size_t>(count * stored_bytes);
      if (header_.type.same_bytes()) return file_->read(offset_ + first * stored_bytes, out, bytes);
      const auto raw = allocate_bytes(bytes);
      file_->read(offset_ + first * stored_bytes, raw.get(), bytes);
      decode_rows(spec_.name, header_.type, first * elements, raw.get(), out, count * elements);
    });
  }

 private:
  std::shared_ptr<const InputFile> file_;
  ArrayHeader header_;
  TensorSpec spec_;
  int64_t offset_;
};

/// Decodes all rows of a stream into memory.
std::shared_ptr<const Column> decode_stream(InputStream& stream, const ArrayHeader& header) {
  const int64_t elements = header.shape.elements();
  TensorSpec spec = row_spec(stream.path(), header);
  const std::string what = fmt::format("an array of {} {}", header.shape.str(), header.type.name());
  const int64_t stored_bytes = elements * header.type.bytes;
  if (stored_bytes > stream.most_bytes())
    throw UserError(
        fmt::format("{}: expected {} ({} bytes), but the gzip file is too small to contain these bytes",
                    stream.path(), what, stored_bytes));
  const auto data = allocate_bytes(static_cast<size_t>(elements) * bytes_of(spec.dtype));
  if (header.type.same_bytes()) {
    stream.read_exactly(data.get(), static_cast<size_t>(stored_bytes), what);
  } else {
    constexpr int64_t kBlock = 1 << 20;
    const auto raw = allocate_bytes(static_cast<size_t>(std::min(kBlock, elements) * header.type.bytes));
    for (int64_t first = 0; first < elements; first += kBlock) {
      const int64_t count = std::min(kBlock, elements - first);
      stream.read_exactly(raw.get(), static_cast<size_t>(count * header.type.bytes), what);
      decode_rows(stream.path(), header.type, first, raw.get(),
                  data.get() + static_cast<size_t>(first) * bytes_of(spec.dtype), count);
    }
  }
  std::byte extra{};
  if (stream.read(&extra, 1) != 0)
    throw UserError(
        fmt::format("{}: expected the file to end after {} (at byte {}), but the file has more data",
                    stream.path(), what, stream.offset() - 1));
  return std::make_shared<MemoryColumn>(std::move(spec), header.shape[0], data);
}

}  // namespace

void decode_rows(const std::string& name, StoredType type, int64_t first_element, const void* src, void* dst,
                 int64_t count) {
  const int64_t good = decode(type, src, dst, count);
  if (good == count) return;
  const int64_t element = first_element + good;
  if (type.kind == StoredType::Kind::real)
    throw UserError(
        fmt::format("{}: the number at element {} is out of the range of float32", name, element));
  throw UserError(fmt::format("{}: the integer at element {} is out of the range of int32", name, element));
}

std::shared_ptr<const Column> rows_in_file(std::shared_ptr<const InputFile> file, const std::string& name,
                                           ArrayHeader header, int64_t offset) {
  const int64_t bytes = header.shape.elements() * header.type.bytes;
  if (offset < 0 || offset > file->size() || bytes > file->size() - offset)
    throw UserError(
        fmt::format("{}: the array has {} bytes and begins at byte {}, but the file has only {} bytes", name,
                    bytes, offset, file->size()));
  return std::make_shared<ArrayFileColumn>(std::move(file), name, std::move(header), offset);
}

std::shared_ptr<const Column> open_array_file(const std::string& path, const ParseArrayHeader& parse_header) {
  InputStream stream(path);
  const ArrayHeader header = parse_header(stream);
  check_shape(path, header.shape, header.type.bytes);
  if (stream.is_packed()) return decode_stream(stream, header);
  const int64_t expected = stream.offset() + header.shape.elements() * header.type.bytes;
  if (stream.file()->size() != expected)
    throw UserError(fmt::format(
        "{}: expected a file of {} bytes (a header of {} bytes and an array of {} {}), found {} bytes", path,
        expected, stream.offset(), header.shape.str(), header.type.name(), stream.file()->size()));
  return rows_in_file(stream.file(), path, header, stream.offset());
}

}  // namespace dtrain
