// Generates those parts of `dtrain new` configurations that concern text.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

struct NewConfig;   // new_config.h
struct NewOptions;  // new_config.h

/// Size of the vocabulary of a classifier, in tokens.
inline constexpr int64_t kNewVocabulary = 8192;

/// Returns the length of a sample in tokens, for texts that have `words` words on average.
int64_t length_for_words(double words);
/// Returns the section `model` for a classifier of texts with `length` tokens. `last`: the line of the last
/// layer.
std::string text_model(int64_t length, const std::string& last);

/// Returns true for a folder whose subfolders contain .txt files and no images. If the folder has a training
/// split, its subfolders are examined instead.
bool is_folder_of_texts(const std::string& folder);

/// Returns the configuration of a language model for a text file. Throws UserError if the file is too short.
NewConfig prose_config(const NewOptions& options);
/// Returns the configuration of a classifier for a folder that contains one folder of texts for each class.
/// Throws UserError if there are fewer than two classes.
NewConfig text_folder_config(const NewOptions& options);

}  // namespace dtrain
