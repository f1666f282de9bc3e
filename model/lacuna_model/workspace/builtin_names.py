"""The names that a language declares itself, and the members of its own types, where these are listed."""

import builtins
import io
import types
from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PYTHON_TYPES = (
    *(one for one in vars(builtins).values() if isinstance(one, type)),
    *(one for one in vars(types).values() if isinstance(one, type)),
    io.TextIOWrapper,
    io.BufferedReader,
)
_SCRIPT = _words(
    """
    __dirname __filename AbortController AbortSignal addEventListener AggregateError alert arguments Array
    ArrayBuffer atob Atomics BigInt BigInt64Array BigUint64Array Blob Boolean btoa Buffer cancelAnimationFrame
    clearImmediate clearInterval clearTimeout console crypto CustomEvent DataView Date decodeURI
    decodeURIComponent document Document DOMException Element encodeURI encodeURIComponent Error eval EvalError
    Event EventTarget exports fetch File FileReader FinalizationRegistry Float32Array Float64Array FormData
    Function global globalThis Headers history HTMLElement HTMLInputElement Infinity Int16Array Int32Array
    Int8Array Intl isFinite isNaN Iterator JSON localStorage location Map Math MessageChannel module
    MutationObserver NaN navigator Node NodeJS Number Object parseFloat parseInt performance process Promise Proxy
    queueMicrotask RangeError ReadableStream ReferenceError Reflect RegExp removeEventListener Request
    requestAnimationFrame require Response self sessionStorage Set setImmediate setInterval setTimeout
    SharedArrayBuffer String structuredClone super Symbol SyntaxError TextDecoder TextEncoder this TypeError
    Uint16Array Uint32Array Uint8Array Uint8ClampedArray undefined URIError URL URLSearchParams WeakMap WeakRef
    WeakSet WebAssembly WebSocket window Window Worker WritableStream XMLHttpRequest
    """
)
_TYPES = _words(
    """
    any ArrayBufferLike ArrayBufferView ArrayLike asserts AsyncDisposable AsyncGenerator AsyncIterable
    AsyncIterator Awaited bigint BodyInit boolean BufferEncoding Capitalize ClassAccessorDecoratorContext
    ClassAccessorDecoratorResult ClassAccessorDecoratorTarget ClassDecorator ClassDecoratorContext
    ClassFieldDecoratorContext ClassGetterDecoratorContext ClassMethodDecoratorContext ClassSetterDecoratorContext
    ConstructorParameters DecoratorContext Disposable ErrorOptions EventListener Exclude Extract Generator
    HeadersInit HTMLButtonElement HTMLDivElement HTMLFormElement infer InstanceType is Iterable IterableIterator
    IteratorResult IteratorReturnResult IteratorYieldResult JSX KeyboardEvent keyof Lowercase MessageEvent
    MethodDecorator MouseEvent never NodeList NodeListOf NoInfer NonNullable number object Omit OmitThisParameter
    ParameterDecorator Parameters Partial Pick PromiseConstructor PromiseFulfilledResult PromiseLike
    PromiseRejectedResult PromiseSettledResult PropertyDecorator PropertyDescriptor PropertyDescriptorMap
    PropertyKey ProxyHandler Readonly readonly ReadonlyArray ReadonlyMap ReadonlySet Record RegExpExecArray
    RegExpMatchArray RequestInit Required ResponseInit ReturnType string SVGElement symbol TemplateStringsArray
    ThisParameterType ThisType Uncapitalize unique unknown Uppercase void
    """
)
_SCRIPT_MEMBERS = _words(
    """
    abort abs acos add addEventListener all allSettled any append appendChild apply arrayBuffer asin assert assign
    at atan atan2 attributes back bind blob blur body bubbles byteLength byteOffset call caller catch cause cbrt
    ceil charAt charCodeAt children classList className clear click clientX clientY clone close closest code
    codePointAt concat construct constructor contains content cookie copyWithin cos count create createElement
    currentTarget cwd data debug defaultPrevented defaultValue defineProperties defineProperty delete
    deleteProperty deref description destroy destroyed detail dir dirname disabled dispatchEvent documentElement
    done dotAll E end endsWith entries enumerable env error every exec exit exp exports fill filter finally find
    findIndex findLast findLastIndex flags flat flatMap floor focus for forEach freeze from fromCharCode
    fromCodePoint fromEntries fround get getAttribute getBoundingClientRect getDate getDay getElementById
    getElementsByTagName getFullYear getHours getMilliseconds getMinutes getMonth getOwnPropertyDescriptor
    getOwnPropertyNames getOwnPropertySymbols getPrototypeOf getReader getSeconds getTime getTimezoneOffset
    getUTCDate getUTCFullYear getUTCHours getUTCMonth global groups has hasAttribute hash hasOwn hasOwnProperty
    headers headersSent height host hostname href hypot id ignoreCase imul includes index indexOf info innerHeight
    innerHTML innerText innerWidth input insertBefore is isArray isExtensible isFinite isFrozen isInteger isNaN
    isPrototypeOf isSafeInteger isView iterator join json key keyCode keys lastIndex lastIndexOf length listeners
    localeCompare location log log10 log2 map match matchAll matches max MAX_SAFE_INTEGER MAX_VALUE message meta
    method min MIN_SAFE_INTEGER MIN_VALUE multiline name next nextSibling nodeName nodeType normalize now observe
    of ok on once onload open origin ownKeys padEnd padStart parent parentElement parentNode parse path pathname
    pause PI pid pipe platform play pop port postMessage pow preventDefault preventExtensions protocol prototype
    push querySelector querySelectorAll race random raw read readable reason reduce reduceRight reject remove
    removeAllListeners removeAttribute removeChild removeEventListener removeListener repeat replace replaceAll
    replaceChildren reset resolve response result return reverse round scrollIntoView scrollTop seal search
    searchParams select send set setAttribute setDate setFullYear setHours setMilliseconds setMinutes setMonth
    setPrototypeOf setSeconds setTime shift sign signal sin size slice some sort source species splice split sqrt
    stack startsWith status statusCode statusText stderr stdin stdout sticky stopPropagation stringify style
    subarray submit substr substring tagName tan target test text textContent then throw timeStamp toDateString
    toFixed toISOString toJSON toLocaleDateString toLocaleLowerCase toLocaleString toLocaleTimeString
    toLocaleUpperCase toLowerCase toPrecision toString toStringTag toTimeString toUpperCase toUTCString trace trim
    trimEnd trimStart trunc type unicode unobserve unshift url value valueAsNumber valueOf values version view
    warn width with writable write
    """
)

_GO = _words(
    """
    _ any append bool byte cap clear close comparable complex complex128 complex64 copy delete error false float32
    float64 imag int int16 int32 int64 int8 iota len make max min new nil panic print println real recover rune
    string true uint uint16 uint32 uint64 uint8 uintptr
    """
)
_RUST = _words(
    """
    _ alloc allow AsMut AsRef assert assert_eq assert_ne async bool box Box cfg char Clone column compile_error
    concat Copy core crate dbg Debug debug_assert debug_assert_eq debug_assert_ne Default derive doc
    DoubleEndedIterator Drop drop env eprint eprintln Eq Err ExactSizeIterator Extend f32 f64 false file Fn FnMut
    FnOnce format format_args From FromIterator Hash i128 i16 i32 i64 i8 include include_bytes include_str inline
    Into IntoIterator isize Iterator line macro_rules matches module_path must_use None Ok Option option_env Ord
    panic PartialEq PartialOrd print println Result Self self Send Sized Some static std str String stringify
    super Sync test thread_local todo ToOwned ToString true TryFrom TryInto u128 u16 u32 u64 u8 unimplemented
    Unpin unreachable usize vec Vec write writeln
    """
)
NAMES: Mapping[str, frozenset[str]] = {
    "python": frozenset((*dir(builtins), "__file__", "__annotations__", "__path__", "__all__", "reveal_type")),
    "javascript": _SCRIPT | _TYPES,
    "typescript": _SCRIPT | _TYPES,
    "tsx": _SCRIPT | _TYPES,
    "go": _GO,
    "rust": _RUST,
}
MEMBERS: Mapping[str, frozenset[str]] = {
    "python": frozenset(name for one in _PYTHON_TYPES for name in dir(one)),
    "javascript": _SCRIPT_MEMBERS,
    "typescript": _SCRIPT_MEMBERS,
    "tsx": _SCRIPT_MEMBERS,
}
