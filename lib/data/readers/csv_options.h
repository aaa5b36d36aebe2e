// What a configuration says of a csv reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/readers/binding.h"

namespace dtrain {

/// A field of the lines: by its name in the header, or by its index, which counts from the end where it is
/// negative.
struct CsvName {
  std::optional<int64_t> index;
  std::string name;
};

/// One field, or a list of them.
struct CsvNames : std::vector<CsvName> {};

/// What stands for a value that is not there: a number, or the training split's mean or median.
struct CsvFill {
  std::string written;           // "mean", "median" or the number
  std::optional<double> number;  // unset: of the training split
};

enum class CsvUnknown { error, other };
template <>
inline const EnumNames<CsvUnknown> names_of<CsvUnknown> = {{CsvUnknown::error, "error"},
                                                           {CsvUnknown::other, "other"}};

struct CsvOptions {
  std::string file;
  std::optional<CsvName> target;
  Named<CsvName> targets;
  bool header = false;
  std::string delimiter = ",";
  CsvNames columns, drop, categories;
  Named<CsvNames> inputs;
  CsvUnknown unknown = CsvUnknown::error;
  std::optional<CsvFill> fill;
  std::optional<CsvName> id, weight;
};

const Schema<CsvOptions>& csv_schema();

}  // namespace dtrain
