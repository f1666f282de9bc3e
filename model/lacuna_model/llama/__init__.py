"""A reader on libllama, llama.cpp's library: models of architectures that our own kernels do not read, on its devices.

``library`` binds the functions of one version of the library, and tries a file in a process of its own. ``loading``
opens a model with it as a fill-in-the-middle model like any other. ``tracks`` reads runs of tokens, and
shares out the keys and values that it keeps. Nothing of it is imported, and no library loaded, unless a model
needs it.
"""
