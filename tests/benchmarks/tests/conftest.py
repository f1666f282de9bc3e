from tests.model.conftest import gguf, links, llama_model, model, real_tokenizer, tokenizer

__all__ = ["gguf", "links", "llama_model", "model", "real_tokenizer", "tokenizer"]
