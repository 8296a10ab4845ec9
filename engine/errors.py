"""What can go wrong in the engine, by whose fault it is. Every text is meant for a person."""

from __future__ import annotations


class EngineError(Exception):
    """Anything the engine raises on purpose."""


class ModelError(EngineError):
    """The model cannot be found, fetched or loaded: a matter of configuration or of the machine."""


class RequestError(EngineError):
    """The request cannot be served as it is: the client's to change."""


class FieldError(RequestError):
    """One field of a request is wrong, or asks for what is not supported; `field` is its name in the body."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field


class PromptTooLongError(RequestError):
    """The prompt leaves no room for an answer."""

    def __init__(self, tokens: int, context_length: int) -> None:
        super().__init__(
            f"the prompt has {tokens} tokens and this model's context is {context_length}; "
            f"shorten it to at most {context_length - 1}"
        )


class DrainingError(EngineError):
    """The engine is going down and takes no new request."""

    def __init__(self) -> None:
        super().__init__("the engine is draining and takes no new requests; try again in a moment")


class EngineStoppedError(EngineError):
    """The engine went down under a request that was still being served."""

    def __init__(self) -> None:
        super().__init__("the engine stopped before this answer was complete")


class DecodeError(EngineError):
    """Decoding failed under one request: a fault of this program or of the machine (memory); others are served on."""


def grammar_error(problem: str) -> DecodeError:
    """The answer's grammar cannot be followed any further."""
    return DecodeError(f"the answer's form could not be kept: {problem}; try a simpler schema")


class UnknownRemedyError(RequestError):
    """There is no such remedy."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"no remedy is called {name!r}; there are {', '.join(known)}")


class NotReadyError(EngineError):
    """The model is not loaded yet."""

    def __init__(self, doing: str) -> None:
        super().__init__(f"the model is not loaded yet ({doing}); /health tells when it is")


class OverloadedError(EngineError):
    """Too many requests wait already."""

    def __init__(self, most: int) -> None:
        super().__init__(f"{most} requests are waiting already; try again in a moment")


class ModelMissingError(RequestError):
    """The request names a model that is not served here."""

    def __init__(self, asked: str | None, served: str) -> None:
        super().__init__(f"no model {asked!r} is served here; there is {served!r}")


class StalledError(EngineError):
    """The decode thread did not get to it in time."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(f"{what} did not get its turn within {seconds:g} s")
