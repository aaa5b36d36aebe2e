// The lines of tables.jsonl: the metrics of an epoch that are no numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/json.h"
#include "run/run_config.h"

namespace dtrain {

/// A line of tables.jsonl with its end; null: the epoch has no tables. Immutable, so that a state and its
/// copies share it.
using TableLine = std::shared_ptr<const std::string>;

/// Writes one line: an object of the epoch (from 1), the global step, and the tables by name.
class TableLineWriter {
 public:
  TableLineWriter(int64_t epoch, int64_t step);
  void add(const std::string& name, const Json& table);
  /// Null where nothing was added. Call it once.
  TableLine finish();

 private:
  std::string text_;
  bool empty_ = true;
};

/// The line of a record that has nothing but an epoch, a step and tables.
TableLine table_line(const Json& record);

/// What the tables of a run's metrics may take, in bytes.
struct TableBytes {
  size_t memory = 0;  // of the host, while an epoch ends, is saved and is reported
  size_t disk = 0;    // of a checkpoint, and of tables.jsonl
};
TableBytes table_bytes(const RunConfig& config);

}  // namespace dtrain
