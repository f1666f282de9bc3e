from lacuna_model.snippets.packages.declared_module import READERS

GO = """\
package shop

// func Commented() {}
import "fmt"

const Rate = 3
const (
	StatusOpen = 200 // open
	statusHidden = 1
)

type Options struct {
	Deep bool
	Name string `json:"name"`
	inner int
}

type Reader interface {
	Read(p []byte) (n int, err error)
}

func New[T any](name string, options ...Options) (*Till, error) {
	Inner(1)
	return nil, nil
}

func (t *Till) Pay(amount int) error {
	return nil
}

func hidden() {}

type Till struct{}
"""

RUST = """\
//! Sells.
pub use crate::paper::Sheet;
pub use glue::*;
pub mod paper;
mod hidden;
pub(crate) fn inside() {}
/* pub fn commented() {} */

pub fn open<'a, T>(name: &'a str, rate: u8) -> Result<T> where T: Sold<'a> {
    let value = 1;
}

pub struct Till<T> {
    pub rate: u8,
    secret: T,
}

impl<T: Clone> Till<T> {
    pub async fn pay(&mut self, amount: u8) -> Option<T> {
    }
    fn count(&self) {}
}

impl<T> fmt::Display for Till<T> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
    }
}

pub enum Kind {
    One,
    Two(u8),
}

pub trait Sold {
    fn sell<S>(&self, shop: S) -> Result<S::Ok, S::Error>;
}
"""


def test_the_public_names_of_a_package_of_go() -> None:
    found = READERS["go"](GO)
    assert found.names == {
        "Rate": "",
        "StatusOpen": "",
        "Options": "type Options { Deep bool; Name string }",
        "Reader": "type Reader { Read(p []byte) (n int, err error) }",
        "New": "func New(name string, options ...Options) (*Till, error)",
        "Till": "type Till",
    }
    assert found.members["Till"] == {"Pay": "func Pay(amount int) error"}
    assert not found.is_open


def test_the_public_names_of_a_module_of_rust() -> None:
    found = READERS["rust"](RUST)
    assert found.names == {
        "paper": "",
        "open": "fn open(name: &str, rate: u8) -> Result<T>",
        "Till": "type Till { rate: u8 }",
        "Kind": "type Kind { One; Two(u8) }",
        "Sold": "type Sold { sell(shop: S) -> Result<S::Ok, S::Error> }",
    }
    assert found.members["Till"] == {
        "rate": "rate: u8",
        "pay": "pay(amount: u8) -> Option<T>",
        "fmt": "fmt(f: &mut Formatter) -> fmt::Result",
    }
    assert (found.imported["Sheet"], found.stars, found.is_open) == (("paper", "Sheet"), ("glue",), False)
    assert READERS["rust"]("declare! {\n    pub fn made() {}\n}\n").is_open
