// NumPy's .npy files: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#include <bit>
#include <charconv>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "data/readers/arrays/array_file.h"
#include "data/readers/binding.h"
#include "data/readers/open_any.h"

namespace dtrain {

namespace {

struct NpyOptions : ArrayNames {};

/// Text of the header: a Python dictionary in the fixed format that NumPy writes.
class NpyHeader {
 public:
  NpyHeader(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

  StoredType type() const {
    const std::string_view written = value_of("'descr':");
    const std::string_view descr = written.substr(0, written.find_first_of(",}"));
    if (descr.size() >= 5 && descr.front() == '\'' && descr.back() == '\'') {
      const char order = descr[1], kind = descr[2];
      const std::string_view digits = descr.substr(3, descr.size() - 4);
      int bytes = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
      const bool integer = kind == 'i' || kind == 'u' || kind == 'b',
                 power = digits == "1" || digits == "2" || digits == "4" || digits == "8";
      const bool big = order == '>', known_order = big || order == '<' || order == '|' || order == '=';
      const bool native_big = std::endian::native == std::endian::big;
      using Kind = StoredType::Kind;
      if (known_order && power && ((kind == 'f' && bytes >= 4) || (integer && (kind != 'b' || bytes == 1))))
        return {kind == 'f'   ? Kind::real
                : kind == 'i' ? Kind::signed_integer
                              : Kind::unsigned_integer,
                bytes, bytes > 1 && order != '=' && big != native_big};
    }
    fail("a dtype of integers, booleans, float32 or float64", descr);
  }

  bool fortran_order() const { return value_of("'fortran_order':").starts_with("True"); }

  Shape shape() const {
    std::string_view rest = value_of("'shape':");
    const size_t end = rest.find(')');
    if (!rest.starts_with('(') || end == std::string_view::npos) fail("a shape", rest);
    rest = rest.substr(1, end - 1);
    std::vector<int64_t> extents;
    while (!rest.empty()) {
      int64_t extent = 0;
      const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), extent);
      if (error != std::errc() || extents.size() == 32) fail("a shape of at most 32 integers", rest);
      extents.push_back(extent);
      rest.remove_prefix(static_cast<size_t>(stop - rest.data()));
      while (!rest.empty() && (rest.front() == ',' || rest.front() == ' ')) rest.remove_prefix(1);
    }
    return Shape(std::move(extents));
  }

 private:
  std::string_view value_of(std::string_view key) const {
    const size_t at = text_.find(key);
    if (at == std::string::npos) fail(key, text_);
    std::string_view rest = std::string_view(text_).substr(at + key.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest;
  }
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    throw UserError(fmt::format("{}: expected {} in the .npy header, found \"{}\"", path_, expected,
                                found.substr(0, 80)));
  }

  std::string path_, text_;
};

ArrayHeader parse_npy(InputStream& stream) {
  unsigned char magic[8];
  stream.read_exactly(magic, sizeof magic, "an .npy header");
  if (std::memcmp(magic, "\x93NUMPY", 6) != 0 || magic[6] < 1 || magic[6] > 3)
    throw UserError(fmt::format(
        "{}: expected an .npy file (\\x93NUMPY and a version from 1 to 3), found other bytes at byte 0",
        stream.path()));
  unsigned char raw[4] = {0, 0, 0, 0};
  stream.read_exactly(raw, magic[6] == 1 ? 2 : 4, "the header's length");
  const uint32_t length = raw[0] | raw[1] << 8 | raw[2] << 16 | static_cast<uint32_t>(raw[3]) << 24;
  if (length > (1u << 16))
    throw UserError(fmt::format("{}: expected a header of at most 65536 bytes, found one of {} bytes",
                                stream.path(), length));
  std::string text(length, '\0');
  stream.read_exactly(text.data(), length, "the header");
  const NpyHeader header(stream.path(), text);
  ArrayHeader array{header.type(), header.shape()};
  if (header.fortran_order() && array.shape.rank() > 1)
    throw UserError(
        fmt::format("{}: expected an array in C order, found Fortran order; convert the array with "
                    "numpy.ascontiguousarray",
                    stream.path()));
  return array;
}

class NpyReader final : public Reader {
 public:
  explicit NpyReader(const NpyOptions& options) : options_(options) {}

  SourceColumns open(const ReadRequest& request) const override {
    Columns columns;
    for (const std::string& name : options_.resolve(request)) columns.push_back(open_npy(request.find(name)));
    ArrayNames::for_each_key(request, [&](const std::string& name) {
      columns.push_back(open_npy(request.find(name), Digits::all));
    });
    return columns;
  }
  std::string why_no_windows(const WindowsOptions& windows) const override {
    return ArrayNames::why_no_windows(windows);
  }
  std::vector<std::string> files() const override { return options_.names(); }
  std::vector<std::string> paths(const ReadRequest& request) const override {
    std::vector<std::string> all;
    ErrorCollector errors;
    errors.attempt({}, [&] { all = Reader::paths(request); });
    errors.attempt({}, [&] {
      ArrayNames::for_each_key(request, [&](const std::string& name) { all.push_back(request.find(name)); });
    });
    errors.throw_if_errors();
    return all;
  }

 private:
  NpyOptions options_;
};

}  // namespace

std::shared_ptr<const Column> open_npy(const std::string& path, Digits digits) {
  return open_array_file(path, [&](InputStream& stream) {
    ArrayHeader header = parse_npy(stream);
    header.type.exact = digits == Digits::all;
    return header;
  });
}

void add_npy(Registry<Reader>& table) {
  Schema<NpyOptions> schema("NumPy's .npy files, with one array in each file.");
  schema.example("{input: images.npy, target: labels.npy}");
  table.add<NpyReader>("npy", add_array_names(schema, "the file"));
}

}  // namespace dtrain
