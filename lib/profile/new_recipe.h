// Training lengths and learning rate schedules for the configurations that `dtrain new` generates.
// bench/templates.py measures how well these configurations train.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

struct TrainingLength {
  int64_t epochs = 0, batch_size = 0;
  int64_t patience = 0;  // number of epochs without improvement after which training stops early
};

TrainingLength length_for_rows(int64_t rows);
TrainingLength length_for_pictures(int64_t pictures);

/// Returns the lines `epochs` and `batch_size` of the section `train`.
std::string epochs_text(const TrainingLength& length);
/// Throws UserError if there are too few samples to divide them into splits. `samples`: the number of samples
/// in words, e.g. "3 texts".
void check_can_be_split(const std::string& path, int64_t count, const std::string& samples);
/// Returns the line of a split whose samples are drawn from the training split.
std::string drawn_split(const char* name, bool stratify);
/// Returns the lines of the section `train` that follow the loss and the metrics, and the section
/// `checkpoint`. The lines of `train` set early stopping and a learning rate that decays over all epochs.
std::string schedule_text(const TrainingLength& length);

inline constexpr const char* kClassWeightText =
    "  class_weight: balanced              # gives a higher weight to samples of rare classes\n";

}  // namespace dtrain
