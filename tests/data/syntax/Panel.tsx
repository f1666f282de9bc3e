import { useState } from "react";

type Props = { title: string; items?: string[] };

export function Panel({ title, items = [] }: Props) {
  const [open, setOpen] = useState<boolean>(false);
  return (
    <section className={open ? "open" : "shut"} onClick={() => setOpen(!open)}>
      <h2>{title.toUpperCase()}</h2>
      {items.map((item, index) => (
        <p key={index}>
          {index + 1}. {item}
        </p>
      ))}
    </section>
  );
}
