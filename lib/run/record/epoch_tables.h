// Lines of tables.jsonl: an epoch's metrics that are arrays rather than numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/json.h"
#include "run/run_config.h"

namespace dtrain {

/// A line of tables.jsonl, including the newline; null if the epoch has no tables. A training state and its
/// copies share the line, which is possible because it never changes.
using TableLine = std::shared_ptr<const std::string>;

/// Writes one line: an object with the epoch (counted from 1), the global step, and the tables by name.
class TableLineWriter {
 public:
  TableLineWriter(int64_t epoch, int64_t step);
  void add(const std::string& name, const Json& table);
  /// Returns the line; null if nothing was added. To be called once.
  TableLine finish();

 private:
  std::string text_;
  bool empty_ = true;
};

/// Returns the line for a record that has only an epoch, a step and tables.
TableLine table_line(const Json& record);

/// Upper bound of the bytes that the tables of a run's metrics need.
struct TableBytes {
  size_t memory = 0;  // maximum bytes of host memory, which are needed at the end of an epoch
  size_t disk = 0;    // bytes in a checkpoint and in tables.jsonl
};
TableBytes table_bytes(const RunConfig& config);

}  // namespace dtrain
