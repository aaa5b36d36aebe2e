// Writes predictions as PNG files: masks of classes, or images.
#pragma once

#include <memory>
#include <string>

#include "data/dataset.h"
#include "data/files/array_writer.h"
#include "data/pictures/mask_classes.h"
#include "data/pictures/picture_options.h"
#include "run/run_config.h"

namespace dtrain {

/// The conversion of an output's numbers to pixels.
struct PictureOutput {
  std::string name;  // name of the output; also the name of its folder if the model has several outputs
  int64_t height = 0, width = 0, channels = 1;
  /// For a mask of classes, the model predicts a score (such as a probability) of each class, and each pixel
  /// is the class with the largest score. If there is only one score per pixel, the pixel is class 1 if the
  /// score is above `threshold`, and class 0 otherwise. For an image, the pixels are the predicted values,
  /// rounded and clipped to 0 to 255.
  TargetPicture pixels = TargetPicture::colors;
  double threshold = 0.5;
  MaskClasses classes = {};  // gray levels or colors to write for the classes; empty: class numbers
};

/// Returns true if the path of --output is a folder for PNG files: it ends in a slash, or the folder exists.
bool is_picture_folder(const std::string& path);

/// Returns the conversion of an output of the configuration. Throws UserError if the output is not an image.
PictureOutput picture_output(const RunConfig& config, size_t head);

/// Opens a writer of one PNG per sample and output: FOLDER/NAME.png, or FOLDER/OUTPUT/NAME.png for several
/// outputs. NAME is the sample's file name without its extension, or the sample's number. Creates the
/// folders. `inputs` must outlive the writer. Throws UserError if two samples have the same name, or if a
/// file to be written is an input or, unless `overwrite`, exists.
std::unique_ptr<ArrayWriter> open_prediction_pictures(const std::string& folder,
                                                      std::vector<PictureOutput> outputs,
                                                      const Dataset& inputs, bool overwrite);

}  // namespace dtrain
