// Writes predictions as a CSV table or JSON lines, with the names of the run's targets and classes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/files/array_writer.h"
#include "run/run_config.h"

namespace dtrain {

/// A destination to which a text is written piece by piece, such as a file.
class TextSink {
 public:
  virtual ~TextSink() = default;
  /// Throws Error if the text cannot be written.
  virtual void write(std::string_view text) = 0;
  /// Ends the text. Throws Error like write().
  virtual void finish() {}
};

/// Opens a file for writing. The text is written to a temporary file, which finish() renames to `path`.
std::unique_ptr<TextSink> open_text_file(const std::string& path);
/// Opens standard output. Drops text after its reader has closed the pipe.
std::unique_ptr<TextSink> open_standard_output();

/// One of the model's outputs, for display.
struct PredictedOutput {
  TensorSpec spec;                        // shape and type for one sample; has the layer's name
  std::vector<std::string> targets = {};  // names of the target's columns in the training file; may be empty
  // The name of each column's class. An output with a single column may have two classes. The column then
  // contains the score (such as a probability) of the second class.
  std::vector<std::string> classes = {};
  // For a single column with two classes: the sum of the scores of both classes. The score of the first class
  // is this sum minus the score in the column.
  double sum = 1;
  // The second of two classes is predicted if its score is above this threshold.
  std::optional<double> threshold = {};

  // True: all classes with a score above 0.5 are predicted; false: only the class with the largest score.
  bool has_labels = false;

  bool is_binary() const { return classes.size() == 2 && spec.shape.elements() == 1; }
};

/// Returns an output of the configuration with its class names. If the data have no class names, the names
/// are the indices of the classes.
PredictedOutput predicted_output(const RunConfig& config, size_t head);

enum class TextFormat { csv, json_lines };

/// Opens a table with one line per sample. A line begins with the id of the sample, or with its row number if
/// it has no id. The columns of each output follow. An output with classes has a column with the predicted
/// class and a column with the score (such as a probability) of each class. Any other output has columns with
/// the predicted values, whose titles are the names of the targets. In JSON lines, the column titles are
/// the keys, and an output without classes is an array if it has several numbers. Without `with_classes`,
/// only the values of the outputs are written. In CSV, a forecast (Dataset::forecast_steps) has one line per
/// step: the id, the number of the step (from 1) in the column "step", and the columns of the outputs.
/// `inputs` must outlive the table.
std::unique_ptr<ArrayWriter> open_prediction_table(std::unique_ptr<TextSink> sink, TextFormat format,
                                                   std::vector<PredictedOutput> outputs, bool with_classes,
                                                   const Dataset& inputs);

}  // namespace dtrain
