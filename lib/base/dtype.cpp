#include "base/dtype.h"

#include <array>

namespace dtrain {

namespace {
struct Info {
  DType type;
  size_t bytes;
  std::string_view name;
};
constexpr std::array<Info, 3> kTypes{
    {{DType::float32, 4, "float32"}, {DType::int32, 4, "int32"}, {DType::uint8, 1, "uint8"}}};
}  // namespace

size_t bytes_of(DType type) {
  return kTypes[static_cast<size_t>(type)].bytes;
}

std::string_view name_of(DType type) {
  return kTypes[static_cast<size_t>(type)].name;
}

std::optional<DType> dtype_from(std::string_view name) {
  for (const Info& info : kTypes)
    if (info.name == name) return info.type;
  return std::nullopt;
}

}  // namespace dtrain
