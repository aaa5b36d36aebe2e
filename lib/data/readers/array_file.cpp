#include "data/readers/array_file.h"

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
      throw UserError(fmt::format("{}: expected a shape that memory can hold, found {}", path, shape.str()));
    bytes = product;
  }
  if (shape.elements() == 0)
    throw UserError(fmt::format("{}: expected samples, found an array of shape {}", path, shape.str()));
}

namespace {

TensorSpec row_spec(const std::string& path, const ArrayHeader& header) {
  std::vector<int64_t> extents(header.shape.begin() + 1, header.shape.end());
  return {path, Shape(std::move(extents)), header.type.dtype()};
}

void decode_rows(const std::string& path, const ArrayHeader& header, int64_t first_element, const void* src,
                 void* dst, int64_t count) {
  const int64_t good = decode(header.type, src, dst, count);
  if (good < count)
    throw UserError(fmt::format("{}: expected integers that fit int32, found a larger one at element {}",
                                path, first_element + good));
}

/// Rows of a plain file, read where they stand.
class ArrayFileColumn final : public Column {
 public:
  ArrayFileColumn(const std::string& path, ArrayHeader header, int64_t offset)
      : file_(path), header_(std::move(header)), spec_(row_spec(path, header_)), offset_(offset) {}

  const TensorSpec& spec() const override { return spec_; }
  int64_t size() const override { return header_.shape[0]; }
  bool in_memory() const override { return false; }
  const InputFile& file() const { return file_; }

  void read(std::span<const int64_t> rows, void* dst) const override {
    const int64_t elements = row_elements(), stored_bytes = elements * header_.type.bytes;
    for_each_run(rows, [&](int64_t first, size_t place, int64_t count) {
      auto* out = static_cast<std::byte*>(dst) + place * row_bytes();
      const auto bytes = static_cast<size_t>(count * stored_bytes);
      if (header_.type.same_bytes()) return file_.read(offset_ + first * stored_bytes, out, bytes);
      const auto raw = allocate_bytes(bytes);
      file_.read(offset_ + first * stored_bytes, raw.get(), bytes);
      decode_rows(file_.path(), header_, first * elements, raw.get(), out, count * elements);
    });
  }

 private:
  InputFile file_;
  ArrayHeader header_;
  TensorSpec spec_;
  int64_t offset_;
};

/// All of a stream's rows.
std::shared_ptr<const Column> decode_stream(InputStream& stream, const ArrayHeader& header) {
  const int64_t elements = header.shape.elements();
  TensorSpec spec = row_spec(stream.path(), header);
  const std::string what = fmt::format("an array of {} {}", header.shape.str(), header.type.name());
  const int64_t stored_bytes = elements * header.type.bytes;
  if (stored_bytes > stream.most_bytes())
    throw UserError(fmt::format("{}: expected {} ({} bytes), found a file too small to unpack to it",
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
      decode_rows(stream.path(), header, first, raw.get(),
                  data.get() + static_cast<size_t>(first) * bytes_of(spec.dtype), count);
    }
  }
  std::byte extra{};
  if (stream.read(&extra, 1) != 0)
    throw UserError(fmt::format("{}: expected the end after {} at byte {}, found more", stream.path(), what,
                                stream.offset() - 1));
  return std::make_shared<MemoryColumn>(std::move(spec), header.shape[0], data);
}

}  // namespace

std::shared_ptr<const Column> open_array_file(const std::string& path, const ParseArrayHeader& parse_header) {
  InputStream stream(path);
  const ArrayHeader header = parse_header(stream);
  check_shape(path, header.shape, header.type.bytes);
  if (InputFile(path).is_gzip()) return decode_stream(stream, header);
  auto column = std::make_shared<ArrayFileColumn>(path, header, stream.offset());
  const int64_t expected = stream.offset() + header.shape.elements() * header.type.bytes;
  if (column->file().size() != expected)
    throw UserError(fmt::format("{}: expected {} bytes (a header of {} and an array of {} {}), found {}",
                                path, expected, stream.offset(), header.shape.str(), header.type.name(),
                                column->file().size()));
  return column;
}

}  // namespace dtrain
