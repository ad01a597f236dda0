"""Small tokenizers of the three great families, trained in milliseconds on the texts they are given.

Each builder returns a `PreTrainedTokenizerFast` with its special tokens set, so that tests need no download.
"""

import json
from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

TEXTS: tuple[str, ...] = (
    "The shopkeeper gave the customer a discount because she was a regular",
    "The cat sat on the mat. The cat lay on the rug.",
    "An 18th century poet met Zoë at the café, and she didn't stay.",
    "Hello there world, hi! The house is wonderful.",
    "अपने पोस्ट ऑफिस में",
    "שלום עולם טוב abc",
)
"""Sentences of the project's own examples: enough for every builder to be used without arguments."""


def wordpiece(
    texts: Sequence[str] = TEXTS, *, lowercase: bool = True, vocab_size: int = 400, max_length: int = 512
) -> PreTrainedTokenizerFast:
    """BERT-style: [PAD] is 0, then [UNK] [CLS] [SEP] [MASK]; pieces inside a word begin with ##.

    Args:
        texts: what the vocabulary is learned from; a character not in them is unknown.
        lowercase: True for an "uncased" tokenizer, which also strips accents; False for a "cased" one.
        vocab_size: most entries the vocabulary may have (all single characters are kept even beyond it).
        max_length: what the tokenizer says is the model's limit.
    """
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    core = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.decoder = decoders.WordPiece()
    _train(
        core,
        texts,
        trainers.WordPieceTrainer(vocab_size=vocab_size, special_tokens=specials, show_progress=False),
    )
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, core.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_max_length=max_length,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def byte_level(
    texts: Sequence[str] = TEXTS, *, vocab_size: int = 400, max_length: int = 1024
) -> PreTrainedTokenizerFast:
    """GPT-2-style: bytes, a leading space inside the piece, nothing added, and no padding token.

    <|endoftext|> is the beginning, the end and the unknown token, with id 0.

    Args:
        texts: what the merges are learned from; any other text falls back to bytes.
        vocab_size: most entries the vocabulary may have; 257 are taken by <|endoftext|> and the bytes.
        max_length: what the tokenizer says is the model's limit.
    """
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    _train(core, texts, trainer)
    core.post_processor = processors.ByteLevel(trim_offsets=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_max_length=max_length,
        bos_token="<|endoftext|>",
        eos_token="<|endoftext|>",
        unk_token="<|endoftext|>",
    )


def metaspace(texts: Sequence[str] = TEXTS, *, vocab_size: int = 500, max_length: int = 512) -> PreTrainedTokenizerFast:
    """T5-style SentencePiece unigram: ▁ for a space, </s> appended, unseen characters as bytes <0x..>.

    Ids begin <pad> 0, </s> 1, <unk> 2, <s> 3, then the 256 bytes.

    Args:
        texts: what the pieces are learned from.
        vocab_size: most pieces besides the special tokens and the bytes.
        max_length: what the tokenizer says is the model's limit.
    """
    learner = Tokenizer(models.Unigram())
    learner.pre_tokenizer = pre_tokenizers.Metaspace()
    _train(learner, texts, trainers.UnigramTrainer(vocab_size=vocab_size, unk_token="<unk>", show_progress=False))
    pieces = sorted(_scores(learner).items(), key=lambda item: (-item[1], item[0]))
    specials = [(name, 0.0) for name in ("<pad>", "</s>", "<unk>", "<s>")]
    fallback = [(f"<0x{byte:02X}>", -100.0) for byte in range(256)]
    core = Tokenizer(models.Unigram([*specials, *fallback, *pieces], unk_id=2, byte_fallback=True))
    core.normalizer = normalizers.NFKC()
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    core.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    core.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_max_length=max_length,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        bos_token="<s>",
    )


def _train(core: Tokenizer, texts: Iterable[str], trainer: trainers.Trainer) -> None:
    core.train_from_iterator(list(texts), trainer)


def _scores(learner: Tokenizer) -> dict[str, float]:
    vocab = json.loads(learner.to_str())["model"]["vocab"]
    return {piece: score for piece, score in vocab if piece != "<unk>"}
