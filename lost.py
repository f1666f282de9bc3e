import sys
from tree_sitter import Parser
from lacuna_model.syntax.languages import language_for
from lacuna_model.syntax import junction as J
from lacuna_model.syntax.parse_table import parse_table, START, leaves
from lacuna_model.syntax.insertions import pieces_of
def trace(lang,text,terminal=None):
    l=language_for(name=lang); t=parse_table(l); ins,_=pieces_of(l,t); g=l.grammar()
    name=g.id_for_node_kind("identifier",True)
    root=Parser(g).parse(text).root_node; print(root.has_error)
    stacks,end=[START],0
    for leaf in leaves(root,0):
        w=text[leaf.start_byte:leaf.end_byte]; al=ins.spellings.get(w,()); 
        term=tuple(dict.fromkeys((*al,leaf.grammar_id,*([name] if J.WORD.match(w) else []))))
        nl=b"\n" in text[end:leaf.start_byte]
        new=next(filter(None,(t.read(stacks,one,on_new_line=nl) for one in term)),[])
        print(w,[g.node_kind_for_id(x) for x in term],len(new),[s[-1] for s in new])
        if not new: break
        stacks,end=new,leaf.end_byte
if __name__=="__main__": trace(sys.argv[1],sys.argv[2].encode().decode("unicode_escape").encode())
