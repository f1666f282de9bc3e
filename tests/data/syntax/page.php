<?php
// A page.
namespace App;

function greet(string $name, int $times = 1): string
{
    $text = "";
    for ($i = 0; $i < $times; $i++) {
        $text .= "Hello, {$name}!\n";
    }
    return $text;
}

class Page
{
    private array $parts = [];

    public function add(string $part): self
    {
        if ($part === '') {
            return $this;
        }
        $this->parts[] = trim($part);
        return $this;
    }
}

echo greet("Anna", 2);
