// Loss and metrics of a split.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/loader.h"
#include "train/replicas.h"
#include "train/run_config.h"

namespace dtrain {

/// A loss as samples can give it that the model cannot take.
bool is_suspect(double loss);

/// A split in the run's batches.
std::unique_ptr<Loader> open_loader(const RunConfig& config, const SplitSpec& split, bool shuffle);

/// The means of totals by name: "loss" (the sum of the heads' losses where there are several), then
/// RunConfig::total_names.
std::vector<std::pair<std::string, double>> means_of(const RunConfig& config, const std::vector<double>& sums,
                                                     int64_t samples);

/// Loss and metrics over a whole split. Ends early, with nothing, once `is_to_end` (asked before each batch;
/// null: never) says so.
std::optional<std::vector<std::pair<std::string, double>>> evaluate_split(
    const RunConfig& config, Replicas& replicas, Loader& loader, const std::function<bool()>& is_to_end);

}  // namespace dtrain
