//! A stack of numbers with a small calculator.
use std::collections::HashMap;
use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    Number(f64),
    Op(char),
}

pub struct Stack<'a> {
    items: Vec<f64>,
    names: HashMap<&'a str, f64>,
}

impl<'a> Stack<'a> {
    pub fn new() -> Self {
        Stack { items: Vec::new(), names: HashMap::new() }
    }

    pub fn apply(&mut self, token: &Token) -> Result<f64, String> {
        match token {
            Token::Number(value) => self.items.push(*value),
            Token::Op(op) => {
                let right = self.items.pop().ok_or("empty")?;
                let left = self.items.pop().ok_or_else(|| format!("missing {}", op))?;
                self.items.push(match op {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    _ => return Err(format!("unknown operator {:?}", op)),
                });
            }
        }
        self.items.last().copied().ok_or(String::from("nothing"))
    }

    pub fn name(&mut self, name: &'a str) -> Option<&f64> {
        if let Some(value) = self.items.last() {
            self.names.insert(name, *value);
        }
        self.names.get(name)
    }
}

impl fmt::Display for Stack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (i, item) in self.items.iter().enumerate() {
            write!(f, "{}{}", if i > 0 { ", " } else { "" }, item)?;
        }
        Ok(())
    }
}
