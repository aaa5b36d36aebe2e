// Labels of classes that the data refers to by number and the configuration by name.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

/// Returns the text that labels use for each class: "0", "1", ... if `first`, one of the labels, is a number
/// and no name is a number; else the names themselves. So either all labels of a data set are numbers, or all
/// are names.
std::vector<std::string> label_texts(const std::vector<std::string>& names, const std::string& first);

}  // namespace dtrain
