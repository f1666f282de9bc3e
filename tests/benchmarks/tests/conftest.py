from tests.model.conftest import llama_model, model, tokenizer

__all__ = ["llama_model", "model", "tokenizer"]
