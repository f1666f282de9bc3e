from lacuna_model.snippets.packages.script_module import read

TYPES = """\
/* function hidden(): void; */
import { Inner } from './inner';
export * from './many';
export { first, second as other } from './parts';
export declare const LIMIT: number;
export type Shape = 'a' | 'b';
export declare function fold<T>(sheet: Sheet<T>, options?: { deep: boolean }): Promise<Sheet<T>>;
export declare function fold(sheet: string): string;
export default class Sheet<T> extends Flat {
    private readonly size: number;
    static of(text: string): Sheet<string>;
    constructor(size: number, name?: string);
    cut(at: number,
        deep: boolean): this;
}
export interface Options {
    deep?: boolean;
    found(name: string): void;
}
declare function local(): void;
export { local as named };
declare namespace Tools {
    function glue(a: string): string;
}
"""
MODULES = """\
declare module "fs" {
    import { URL } from "node:url";
    export function readIt(path: string | URL): Buffer;
    interface Stats { size: number; }
}
"""
WHOLE = """\
export = paper;
declare function paper(): void;
declare namespace paper {
    function glue(a: string): string;
    class Sheet { constructor(width: number); cut(at: number): void; }
}
"""
COMMON = """\
const path = require('path');
exports.read = function (file) { let inner = 1; };
Object.defineProperty(exports, "lazy", { get() { return 1; } });
module.exports.write = write;
function write(file, text) {
  function inner() {}
}
"""


def test_types_have_names_with_their_first_signatures() -> None:
    module = read(TYPES)
    assert module.names == {
        "LIMIT": "const LIMIT: number",
        "Shape": "",
        "fold": "function fold(sheet: Sheet<T>, options?: { deep: boolean }): Promise<Sheet<T>>",
        "Sheet": "class Sheet(size: number, name?: string)",
        "Options": "interface Options { deep?: boolean; found(name: string): void }",
        "local": "function local(): void",
        "named": "function local(): void",
        "Tools": "",
        "default": "class Sheet(size: number, name?: string)",
    }
    assert module.members["Sheet"]["cut"] == "cut(at: number, deep: boolean): this"
    assert module.members["Sheet"].keys() == {"of", "constructor", "cut"}
    assert module.members["Tools"] == {"glue": "function glue(a: string): string"}
    assert module.stars == ("./many",)
    assert (module.imported["first"], module.imported["other"]) == (("./parts", "first"), ("./parts", "second"))
    assert not module.is_open


def test_a_module_may_be_declared_by_its_name_or_exported_as_a_whole() -> None:
    module = read(MODULES)
    assert module.names["readIt"] == "function readIt(path: string | URL): Buffer"
    assert module.names["Stats"] == "interface Stats { size: number }"
    whole = read(WHOLE)
    assert whole.names["glue"] == "function glue(a: string): string"
    assert whole.names["Sheet"] == "class Sheet(width: number)"
    assert whole.members["Sheet"]["cut"] == "cut(at: number): void"
    assert whole.is_open


def test_code_of_node_has_what_it_exports() -> None:
    module = read(COMMON)
    assert module.names.keys() >= {"read", "lazy", "write"}
    assert "inner" not in module.names
    assert module.names["write"] == "function write(file, text)"
    assert module.is_open
    assert read("module.exports = { a, b: 1, c() {} };\n").names.keys() >= {"a", "b", "c"}
    assert read("module.exports = require('./lib/all')\n").stars == ("./lib/all",)
