#include "base/dtype.h"

namespace dtrain {

std::string_view name_of(DType type) {
  switch (type) {
    case DType::float32:
      return "float32";
    case DType::bfloat16:
      return "bfloat16";
    case DType::float16:
      return "float16";
    case DType::float64:
      return "float64";
    case DType::int32:
      return "int32";
    case DType::uint8:
      break;
  }
  return "uint8";
}

std::optional<DType> data_type_from(std::string_view name) {
  for (const DType type : kDataTypes)
    if (name_of(type) == name) return type;
  return std::nullopt;
}

}  // namespace dtrain
