// The IDX format of MNIST's files. A file consists of two zero bytes, a type, a rank, big-endian extents, and
// the elements. http://yann.lecun.com/exdb/mnist (at the end of the page).
#include <bit>

#include <fmt/format.h>

#include "base/error.h"
#include "data/readers/arrays/array_file.h"
#include "data/readers/binding.h"
#include "data/readers/open_any.h"

namespace dtrain {

namespace {

struct IdxOptions : ArrayNames {};

std::optional<StoredType> type_of_code(unsigned code) {
  using Kind = StoredType::Kind;
  const bool swapped = std::endian::native == std::endian::little;
  switch (code) {
    case 0x08:
      return StoredType{Kind::unsigned_integer, 1, false};
    case 0x09:
      return StoredType{Kind::signed_integer, 1, false};
    case 0x0B:
      return StoredType{Kind::signed_integer, 2, swapped};
    case 0x0C:
      return StoredType{Kind::signed_integer, 4, swapped};
    case 0x0D:
      return StoredType{Kind::real, 4, swapped};
    case 0x0E:
      return StoredType{Kind::real, 8, swapped};
    default:
      return std::nullopt;
  }
}

ArrayHeader parse_idx(InputStream& stream) {
  unsigned char magic[4];
  stream.read_exactly(magic, sizeof magic, "an IDX header");
  const auto type = type_of_code(magic[2]);
  if (magic[0] != 0 || magic[1] != 0 || !type)
    throw UserError(
        fmt::format("{}: expected an IDX file (bytes 00 00 and a type 08, 09, 0b, 0c, 0d or 0e), found "
                    "{:02x} {:02x} {:02x} at byte 0",
                    stream.path(), magic[0], magic[1], magic[2]));
  std::vector<int64_t> extents(magic[3]);
  for (int64_t& extent : extents) {
    unsigned char raw[4];
    stream.read_exactly(raw, sizeof raw, "an IDX extent");
    extent = static_cast<int64_t>(raw[0]) << 24 | raw[1] << 16 | raw[2] << 8 | raw[3];
  }
  return {*type, Shape(std::move(extents))};
}

class IdxReader final : public Reader {
 public:
  explicit IdxReader(const IdxOptions& options) : options_(options) {}

  SourceColumns open(const ReadRequest& request) const override {
    Columns columns;
    for (const std::string& name : options_.resolve(request)) columns.push_back(open_idx(request.find(name)));
    return columns;
  }
  std::vector<std::string> files() const override { return options_.names(); }

 private:
  IdxOptions options_;
};

}  // namespace

bool is_idx(std::string_view start) {
  return start.size() >= 4 && start[0] == 0 && start[1] == 0 &&
         type_of_code(static_cast<unsigned char>(start[2]));
}

std::shared_ptr<const Column> open_idx(const std::string& path) {
  return open_array_file(path, parse_idx);
}

void add_idx(Registry<Reader>& table) {
  Schema<IdxOptions> schema("Files in the format of MNIST (IDX, plain or .gz), with one array in each file.");
  schema.example("{input: train-images-idx3-ubyte.gz, target: train-labels-idx1-ubyte.gz}");
  table.add<IdxReader>("idx", add_array_names(schema, "the file"));
}

}  // namespace dtrain
