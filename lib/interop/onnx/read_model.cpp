#include "interop/onnx/read_model.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/formats/protobuf.h"
#include "base/half.h"
#include "checkpoint/file.h"

namespace dtrain {

namespace {

/// An element type of TensorProto.DataType. `bytes` is 0 if the elements have no fixed size.
struct ElementType {
  std::string_view name;
  int64_t bytes;
};

constexpr ElementType kTypes[] = {
    {"undefined", 0}, {"float32", 4}, {"uint8", 1},     {"int8", 1},        {"uint16", 2},  {"int16", 2},
    {"int32", 4},     {"int64", 8},   {"string", 0},    {"bool", 1},        {"float16", 2}, {"float64", 8},
    {"uint32", 4},    {"uint64", 8},  {"complex64", 8}, {"complex128", 16}, {"bfloat16", 2}};

std::string type_name(uint64_t type) {
  return type < std::size(kTypes) ? std::string(kTypes[type].name) : fmt::format("type {}", type);
}

/// A field of a protocol buffer message. The value of a varint is in `number`. The values of all other types
/// are in `bytes`.
struct Field {
  uint64_t number = 0;
  std::string_view bytes;
};

/// Reads the messages of one file.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(read_file(path)) {}

  OnnxFile read() {
    OnnxFile result;
    bool has_graph = false;
    const auto whole = file_.span();
    for_each_field({reinterpret_cast<const char*>(whole.data()), whole.size()},
                   [&](uint64_t id, const Field& field) {
                     if (id == 1) result.ir_version = static_cast<int64_t>(field.number);
                     if (id == 2) result.producer = field.bytes;
                     if (id == 7) has_graph = true, read_graph(field.bytes, result);
                     if (id == 8) read_opset(field.bytes, result.opset);
                     if (id == 14) result.metadata.push_back(read_entry(field.bytes));
                   });
    if (!has_graph || result.opset == 0) fail("an ONNX model", "a file without a graph or without an opset");
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
    throw UserError(fmt::format("{}: expected {}, found {}", path_, expected, found));
  }

  uint64_t take_number(std::string_view& message) const {
    uint64_t number = 0;
    if (!take_varint(message, number)) fail("an ONNX file", "a damaged file or one of another format");
    return number;
  }

  template <class Work>
  void for_each_field(std::string_view message, const Work& work) const {
    while (!message.empty()) {
      const uint64_t key = take_number(message);
      Field field;
      uint64_t size = 0;
      switch (static_cast<ProtoWire>(key & 7U)) {
        case ProtoWire::varint:
          field.number = take_number(message);
          break;
        case ProtoWire::fixed64:
          size = 8;
          break;
        case ProtoWire::fixed32:
          size = 4;
          break;
        case ProtoWire::bytes:
          size = take_number(message);
          break;
        default:
          fail("an ONNX file", "a damaged file or one of another format");
      }
      if (size > message.size()) fail("an ONNX file", "a damaged file or one of another format");
      field.bytes = message.substr(0, size);
      message.remove_prefix(size);
      work(key >> 3, field);
    }
  }

  void read_opset(std::string_view message, int64_t& opset) const {
    std::string_view domain;
    int64_t version = 0;
    for_each_field(message, [&](uint64_t id, const Field& field) {
      if (id == 1) domain = field.bytes;
      if (id == 2) version = static_cast<int64_t>(field.number);
    });
    if (domain.empty() || domain == "ai.onnx") opset = version;
  }

  std::pair<std::string, std::string> read_entry(std::string_view message) const {
    std::pair<std::string, std::string> entry;
    for_each_field(message, [&](uint64_t id, const Field& field) {
      if (id == 1) entry.first = field.bytes;
      if (id == 2) entry.second = field.bytes;
    });
    return entry;
  }

  void read_graph(std::string_view message, OnnxFile& result) {
    for_each_field(message, [&](uint64_t id, const Field& field) {
      if (id == 1) result.operators.push_back(read_operator(field.bytes));
      if (id == 2) result.graph = field.bytes;
      if (id == 5) result.initializers.push_back(read_array(field.bytes));
      if (id == 11) result.inputs.push_back(read_end(field.bytes));
      if (id == 12) result.outputs.push_back(read_end(field.bytes));
    });
  }

  OnnxFileNode read_operator(std::string_view message) const {
    OnnxFileNode result;
    for_each_field(message, [&](uint64_t id, const Field& field) {
      if (id == 1) result.inputs.emplace_back(field.bytes);
      if (id == 2) result.outputs.emplace_back(field.bytes);
      if (id == 3) result.name = field.bytes;
      if (id == 4) result.op = field.bytes;
      if (id == 7) result.domain = field.bytes;
    });
    return result;
  }

  /// Reads the ValueInfoProto of an input or output.
  OnnxEnd read_end(std::string_view message) const {
    OnnxEnd result;
    std::string_view type, tensor, shape;
    for_each_field(message, [&](uint64_t id, const Field& field) {
      if (id == 1) result.name = field.bytes;
      if (id == 2) type = field.bytes;
    });
    for_each_field(type, [&](uint64_t id, const Field& field) {
      if (id == 1) tensor = field.bytes;
    });
    for_each_field(tensor, [&](uint64_t id, const Field& field) {
      if (id == 1) result.type = type_name(field.number);
      if (id == 2) shape = field.bytes;
    });
    for_each_field(shape, [&](uint64_t id, const Field& dimension) {
      if (id != 1) return;
      std::string extent = "?";
      for_each_field(dimension.bytes, [&](uint64_t kind, const Field& field) {
        if (kind == 1) extent = std::to_string(static_cast<int64_t>(field.number));
        if (kind == 2) extent = field.bytes;
      });
      result.extents.push_back(std::move(extent));
    });
    return result;
  }

  /// The fields of an initializer.
  struct Tensor {
    uint64_t type = 0;
    std::string_view name, raw;
    std::vector<int64_t> extents;
    std::vector<float> floats;       ///< values of float32 tensors without `raw`
    std::vector<uint64_t> integers;  ///< values of tensors of 16 bits or of integers without `raw`
    std::vector<double> doubles;
    std::string strings;  ///< the length and the bytes of each string
    std::map<std::string, std::string> external;
    bool is_external = false;
  };

  OnnxInitializer read_array(std::string_view message) {
    Tensor tensor;
    for_each_field(message, [&](uint64_t id, const Field& field) { read_field(id, field, tensor); });
    OnnxInitializer result{std::string(tensor.name), type_name(tensor.type), shape_of(tensor), std::nullopt};
    const std::string_view type = result.type;
    if (type == "float32" || type == "float64" || type == "float16" || type == "bfloat16")
      result.values = values_of(tensor, result);
    else
      result.other = result.type + bytes_of(tensor);
    return result;
  }

  void read_field(uint64_t id, const Field& field, Tensor& tensor) const {
    std::string_view packed = field.bytes;
    // The field contains one number, or several packed numbers.
    const auto add_integers = [&](auto& numbers) {
      using Number = typename std::remove_reference_t<decltype(numbers)>::value_type;
      if (packed.empty()) numbers.push_back(static_cast<Number>(field.number));
      while (!packed.empty()) numbers.push_back(static_cast<Number>(take_number(packed)));
    };
    switch (id) {
      case 1:
        add_integers(tensor.extents);
        break;
      case 2:
        tensor.type = field.number;
        break;
      case 4:
        for (; packed.size() >= 4; packed.remove_prefix(4))
          tensor.floats.push_back(
              std::bit_cast<float>(static_cast<uint32_t>(read_little_endian(packed.substr(0, 4)))));
        break;
      case 5:
      case 7:
      case 11:
        add_integers(tensor.integers);
        break;
      case 6:
        tensor.strings += little_endian(uint64_t{field.bytes.size()}).append(field.bytes);
        break;
      case 8:
        tensor.name = field.bytes;
        break;
      case 9:
        tensor.raw = field.bytes;
        break;
      case 10:
        for (; packed.size() >= 8; packed.remove_prefix(8))
          tensor.doubles.push_back(std::bit_cast<double>(read_little_endian(packed.substr(0, 8))));
        break;
      case 13:
        tensor.external.insert(read_entry(field.bytes));
        break;
      case 14:
        tensor.is_external = field.number == 1;
        break;
      default:
        break;
    }
  }

  Shape shape_of(const Tensor& tensor) const {
    constexpr int64_t kMost = int64_t{1} << 40;
    constexpr size_t kMostAxes = 32;
    int64_t elements = 1;
    bool fits = tensor.extents.size() <= kMostAxes;
    for (const int64_t extent : tensor.extents) {
      fits = fits && extent >= 0 && extent <= kMost && (extent == 0 || elements <= kMost / extent);
      elements *= fits ? extent : 1;
    }
    if (!fits)
      fail(fmt::format("a shape of at most {} axes and {} elements for '{}'", kMostAxes, kMost, tensor.name),
           tensor.extents.size() > kMostAxes ? fmt::format("{} axes", tensor.extents.size())
                                             : fmt::format("[{}]", fmt::join(tensor.extents, ", ")));
    return Shape(tensor.extents);
  }

  std::vector<float> values_of(const Tensor& tensor, const OnnxInitializer& array) {
    const auto elements = static_cast<size_t>(array.shape.elements());
    const auto check = [&](size_t found, size_t wanted, const char* unit) {
      if (found != wanted)
        fail(fmt::format("{} {} for '{}' of shape {}", wanted, unit, array.name, array.shape.str()),
             fmt::format("{} {}", found, unit));
    };
    if (!tensor.floats.empty() || !tensor.doubles.empty() || !tensor.integers.empty()) {
      const bool is_float = array.type == "float32", is_double = array.type == "float64";
      check(is_float    ? tensor.floats.size()
            : is_double ? tensor.doubles.size()
                        : tensor.integers.size(),
            elements, "numbers");
      if (is_float) return tensor.floats;
      std::vector<float> values(tensor.doubles.begin(), tensor.doubles.end());
      for (const uint64_t bits : tensor.integers) values.push_back(decode(array.type, bits));
      return values;
    }
    const std::string_view raw = tensor.is_external ? external(tensor) : tensor.raw;
    const auto bytes = static_cast<size_t>(kTypes[tensor.type].bytes);
    check(raw.size(), elements * bytes, "bytes");
    std::vector<float> values(elements);
    if (array.type == "float32") std::memcpy(values.data(), raw.data(), raw.size());
    for (size_t i = 0; array.type != "float32" && i < elements; ++i)
      values[i] = decode(array.type, read_little_endian(raw.substr(i * bytes, bytes)));
    return values;
  }

  /// Returns the bytes of a tensor that is not of a floating-point type. The two forms in which a file may
  /// store integers give the same bytes.
  std::string bytes_of(const Tensor& tensor) {
    if (tensor.is_external) return std::string(external(tensor));
    std::string bytes(tensor.raw);
    bytes += tensor.strings;
    size_t width = tensor.type < std::size(kTypes) ? static_cast<size_t>(kTypes[tensor.type].bytes) : 0;
    if (width == 0) width = sizeof(uint64_t);
    for (const uint64_t number : tensor.integers) bytes += little_endian(number).substr(0, width);
    return bytes;
  }

  static float decode(std::string_view type, uint64_t bits) {
    if (type == "float32") return std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (type == "float16") return from_float16(static_cast<uint16_t>(bits));
    if (type == "bfloat16") return from_bfloat16(static_cast<uint16_t>(bits));
    return static_cast<float>(std::bit_cast<double>(bits));
  }

  std::string_view external(const Tensor& tensor) {
    const auto text = [&](const char* key) {
      const auto found = tensor.external.find(key);
      return found == tensor.external.end() ? std::string() : found->second;
    };
    const std::string name = text("location");
    const std::filesystem::path beside(name);
    if (name.empty() || beside.has_parent_path() || name == ".." || name == "." ||
        name.find('\0') != std::string::npos)
      fail(fmt::format("external data for '{}' in a file in the same folder", tensor.name),
           fmt::format("'{}'", name));
    auto file = external_.find(name);
    if (file == external_.end())
      file =
          external_.emplace(name, read_file((std::filesystem::path(path_).parent_path() / beside).string()))
              .first;
    const std::string_view all(reinterpret_cast<const char*>(file->second.data.get()), file->second.size);
    const auto number = [&](const std::string& key, size_t otherwise) {
      const std::string written = text(key.c_str());
      if (written.empty()) return otherwise;
      size_t value = 0;
      const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), value);
      if (error != std::errc() || end != written.data() + written.size() || value > all.size())
        fail(fmt::format("a valid {} for the data of '{}' (at most {}, the size of the file {})", key,
                         tensor.name, all.size(), name),
             written);
      return value;
    };
    const size_t offset = number("offset", 0), length = number("length", all.size() - offset);
    if (length > all.size() - offset)
      fail(fmt::format("{} bytes of '{}' in {}", length, tensor.name, name),
           fmt::format("{} bytes", all.size() - offset));
    return all.substr(offset, length);
  }

  std::string path_;
  Bytes file_;
  std::map<std::string, Bytes> external_;  ///< contents of external data files, indexed by name
};

}  // namespace

bool is_onnx_file(const std::string& path) {
  return path.ends_with(".onnx");
}

OnnxFile read_onnx(const std::string& path) {
  return Reader(path).read();
}

}  // namespace dtrain
