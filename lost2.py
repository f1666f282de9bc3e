import sys
from lacuna_model.syntax.document import Document
from lacuna_model.syntax.languages import language_for
from lacuna_model.syntax import junction as J
from tree_sitter import Parser
def main(lang,text):
    l=language_for(name=lang); g=l.grammar(); d=Document(text,[(len(text),len(text))],l); d.widen(); w=d.windows[0]
    bal,i=d.balance(0); j=w.junction(bal.sides(i),())
    st,end=[J.START],0
    for leaf in J.leaves(Parser(g).parse(text).root_node,0):
        t=j._terminal(text,leaf); nl=b"\n" in text[end:leaf.start_byte]
        new=j._read(st,t,on_new_line=nl)
        print(t.word,[(x,g.node_kind_for_id(x)) for x in t.symbols],"own",[j._table.token(s[-1],t.word) for s in st],"nl",nl,len(new),[s[-1] for s in new])
        st,end=new,leaf.end_byte
        if not new: break
    return j,st
if __name__=="__main__": main(sys.argv[1],sys.argv[2].encode().decode("unicode_escape").encode())
