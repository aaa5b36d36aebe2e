// Makes tokenizers from vocabularies that were just learned or that are stored in a checkpoint.
#pragma once

#include <memory>
#include <string>

#include "data/data_facts.h"
#include "data/text/tokenizer.h"

namespace dtrain {

/// Returns a tokenizer for these tokens. Throws UserError if merges produce a token of more than
/// kMostPieceBytes bytes.
std::shared_ptr<const Tokenizer> make_tokenizer(const LearnedTokens& learned);

/// Returns the tokenizer of a saved run, whose facts are SavedRun::config.dataset.facts. Throws UserError if
/// the run was trained without text, or on several texts with different vocabularies.
std::shared_ptr<const Tokenizer> tokenizer_of(const DataFacts& facts);

/// Returns the tokenizer of the vocabulary that the facts store under `name`, or null if they store none.
/// Throws UserError if the options ask for a different kind of tokens, a different standardization of words,
/// or fewer tokens than the vocabulary has, because the model was trained with all ids of the vocabulary.
std::shared_ptr<const Tokenizer> known_tokenizer(const SourceFacts& facts, const std::string& name,
                                                 const TokenOptions& options);

/// Throws UserError if the facts store vocabularies, but not for any of `texts` (names of table columns or
/// inputs). Without this check, the texts would silently get new vocabularies.
void check_has_vocabulary(const SourceFacts& facts, const std::vector<std::string>& texts);

}  // namespace dtrain
